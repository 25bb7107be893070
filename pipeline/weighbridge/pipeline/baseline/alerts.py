"""News of baselines, sent on: new findings to a webhook, the state of the last day to a file for Prometheus."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.pipeline.baseline.textfile import write_textfile
from weighbridge.pipeline.baseline.webhook import Delivery, post
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.finding import Finding

_log = logging.getLogger("weighbridge.baseline")


@dataclass(frozen=True, slots=True)
class Alerted:
    """What was sent on.

    Attributes:
        delivery: what became of the post.
        textfile: the day the file tells of; null where there is no file, no judged day, or it could not be written.
    """

    delivery: Delivery
    textfile: date | None


def alert(
    records: Records,
    raised: Sequence[Finding],
    policy: AlertPolicy,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Alerted:
    """Post what is new and write the file. What cannot be sent is logged and told; it never stops a night.

    Args:
        records: table `baseline`.
        raised: findings that are new or other than before (`BaselineResult.raised`).
        policy: where to.
        sleep: how to wait between two tries of a post.
    """
    delivery = post(raised, policy, sleep=sleep)
    written = None
    if policy.textfile is not None:
        try:
            written = write_textfile(records, policy.textfile)
        except OSError as error:
            _log.warning("%s cannot be written (%s); make its folder, or name another", policy.textfile, error.strerror)
    return Alerted(delivery, written)
