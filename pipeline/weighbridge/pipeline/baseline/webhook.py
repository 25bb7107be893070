"""New findings of baselines, posted as JSON to an address of the user's.

What is posted are codes, figures, pseudonyms of tenants and names of tasks and models; no name of a person or tenant
in clear, no id of an attempt, no text. The address may hold a secret, so it is in no message and in no log.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO

from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import Finding

_log = logging.getLogger("weighbridge.baseline")
_SCALE = tuple(Severity)
# Of one post; more findings than this are counted and not listed.
MOST = 100
KIND = "baseline_findings"
_OK, _REDIRECT, _SERVER = 200, 300, 500
_TRY_AGAIN = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a post.

    Attributes:
        findings: how many were posted, or should have been.
        delivered: whether the receiver took them; null where there was nothing to post or nowhere to post to.
        attempts: how often it was tried.
        outcome: in a word or two, without the address.
    """

    findings: int
    delivered: bool | None
    attempts: int
    outcome: str


def post(
    findings: Sequence[Finding],
    policy: AlertPolicy,
    *,
    kind: str = KIND,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Post findings of at least the policy's severity. A failure is told and logged; it never raises.

    Args:
        findings: the new ones.
        policy: where to, how long and how often.
        kind: what they are, for the receiver.
        sleep: how to wait between two tries: 1 s, then twice as long each time.
    """
    news = worth_posting(findings, policy)
    if not policy.webhook or not news:
        return Delivery(len(news), None, 0, "nowhere to post to" if news else "nothing to post")
    body = json.dumps(payload(news, kind), ensure_ascii=False, allow_nan=False).encode()
    outcome = ""
    for attempt in range(1, policy.attempts + 1):
        outcome, again = _in_time(policy.webhook, body, policy.timeout_s)
        if not outcome:
            return Delivery(len(news), delivered=True, attempts=attempt, outcome="delivered")
        if not again or attempt == policy.attempts:
            break
        sleep(float(2 ** (attempt - 1)))
    _log.warning("the webhook did not take %d findings after %d attempts: %s", len(news), attempt, outcome)
    return Delivery(len(news), delivered=False, attempts=attempt, outcome=outcome)


def worth_posting(findings: Sequence[Finding], policy: AlertPolicy) -> list[Finding]:
    """Those of at least the policy's severity, in their order."""
    return [finding for finding in findings if _SCALE.index(finding.severity) >= _SCALE.index(policy.severity)]


def payload(findings: Sequence[Finding], kind: str = KIND) -> dict[str, object]:
    """What is posted. The same finding has the same id whenever it is posted."""
    return {
        "source": "weighbridge",
        "kind": kind,
        "findings": [_told(finding) for finding in findings[:MOST]],
        "left_out": max(len(findings) - MOST, 0),
    }


def _told(finding: Finding) -> Mapping[str, object]:
    return {
        "finding_id": finding.finding_id,
        "code": finding.code,
        "cause": finding.cause,
        "severity": str(finding.severity),
        "period": finding.period,
        "first_day": None if finding.first_day is None else finding.first_day.isoformat(),
        "last_day": None if finding.last_day is None else finding.last_day.isoformat(),
        "subject": dict(finding.subject),
        "expected": finding.expected,
        "observed": finding.observed,
        "unit": finding.unit,
        "amount": None if finding.amount is None else format(finding.amount.normalize(), "f"),
        "currency": finding.currency,
        "cure": finding.cure,
    }


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A receiver that sends the post elsewhere has not taken it: its new address is not one the user has named."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow nothing."""


def _in_time(address: str, body: bytes, timeout: float) -> tuple[str, bool]:
    """`_tried`, within its time whatever the receiver does.

    A timeout of a socket is one for each byte: a receiver that sends its answer drop by drop, or a name that takes long
    to resolve, would hold a night for as long as it likes.
    """
    told: list[tuple[str, bool]] = []
    thread = threading.Thread(target=lambda: told.append(_tried(address, body, timeout)), daemon=True)
    thread.start()
    thread.join(timeout)
    return told[0] if told else (TimeoutError.__name__, True)


def _tried(address: str, body: bytes, timeout: float) -> tuple[str, bool]:
    """What went wrong, empty where nothing did, and whether trying again can help."""
    opener = urllib.request.build_opener(_NoRedirect)
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "weighbridge"}
    try:
        # The settings allow http and https only.
        request = urllib.request.Request(address, data=body, headers=headers, method="POST")  # noqa: S310
        with opener.open(request, timeout=timeout) as answer:
            status = int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return f"status {error.code}", error.code >= _SERVER or error.code in _TRY_AGAIN
    except (OSError, HTTPException) as error:  # a refused connection, a name that does not resolve, a timeout
        return type(error.reason if isinstance(error, urllib.error.URLError) else error).__name__, True
    except ValueError as error:  # an address that is none
        return type(error).__name__, False
    return ("", False) if _OK <= status < _REDIRECT else (f"status {status}", False)
