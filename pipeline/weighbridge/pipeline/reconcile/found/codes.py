"""Every code a finding can have, so that a code nobody knows is a mistake and not an empty list."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from weighbridge.pipeline.ingest.outcome import Flag, flag_names
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.found import flag_facts, gap_findings, record_findings
from weighbridge.schemas.errors import ConfigError


def finding_codes() -> frozenset[str]:
    """The codes of the findings this version makes: of causes, of what is left unexplained, of records, of flags."""
    flags = set(flag_names(sum(Flag))) - flag_facts.ELSEWHERE
    gaps = {kind.code for kind in gap_findings.KINDS}
    return frozenset({cause.code for cause in all_causes()} | gaps | flags | set(record_findings.CODES))


def checked_code(lake: Lake, code: str, others: Collection[str] = ()) -> str:
    """`code` itself.

    Args:
        lake: its findings may have codes of a later version, or of a rule of the user's own.
        code: the code.
        others: codes of findings that other rooms make.

    Raises:
        ConfigError: no finding can have it, and none of the lake has; names the nearest one and all others.
    """
    known = finding_codes() | set(others)
    if code not in known:
        known |= set(lake.scan("finding", columns=["code"]).unique().collect()["code"])
    if code in known:
        return code
    near = difflib.get_close_matches(code.lower().replace("-", "_"), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(f"no finding has the code {code!r}; {hint}Known are {', '.join(sorted(known))}")
