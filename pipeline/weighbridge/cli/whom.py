"""Whom a verb is about, and where its data lies. A plain name becomes a pseudonym at once and goes nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.retention.places import Places
    from weighbridge.pipeline.retention.subject import Subject
    from weighbridge.pipeline.run.home import Home


def tenant_of(home: Home, name: str | None) -> str | None:
    """The pseudonym of a tenant: of a name by the installation's key, of a pseudonym itself; `-` reads a pipe.

    Raises:
        ConfigError: the name is empty.
    """
    from weighbridge.pipeline.ingest.pseudonyms import tenant

    if name is None:
        return None
    told = sys.stdin.readline().rstrip("\n") if name == "-" else name
    if not told.strip():
        raise ConfigError("the tenant's name is empty; give its name, or its pseudonym as reports show it")
    return tenant(home.key, told)


def subject_of(home: Home, tenant: str | None, subject: str | None) -> Subject:
    """Whom an erasure is about.

    Args:
        home: the installation.
        tenant: the name or pseudonym of a tenant.
        subject: a bucket number of that tenant, or a file with one attempt id per line.

    Raises:
        ConfigError: neither is given, or the file cannot be read as attempt ids.
    """
    import polars as pl

    from weighbridge.pipeline.retention.subject import Subject
    from weighbridge.schemas.identity import AttemptKey

    whom = tenant_of(home, tenant)
    if subject is None or subject.isdecimal():
        return Subject(tenant=whom, bucket=None if subject is None else int(subject))
    try:
        lines = Path(subject).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            "--subject is neither the number of a bucket nor a file that can be read; name a file with one attempt id "
            "per line, as `explain` prints them"
        ) from None
    keys = []
    for number, line in enumerate(lines, start=1):
        try:
            keys.append(tuple(AttemptKey.from_hex(line)))
        except ValueError:
            raise ConfigError(
                f"{subject}, entry {number} is no attempt id: 32 hexadecimal digits are expected, as `explain` prints "
                "them; nothing was erased"
            ) from None
    held = pl.DataFrame(keys, schema={"attempt_hi": pl.Int64, "attempt_lo": pl.Int64}, orient="row").unique()
    return Subject(tenant=whom, attempts=held)


def places_of_home(home: Home, searched: Sequence[Path] = (), spools: Sequence[Path] = ()) -> Places:
    """Where the data of an installation lies, and further folders to search or spools to empty."""
    from weighbridge.pipeline.run.retain import places_of

    places = places_of(home)
    return replace(places, spools=(*places.spools, *spools), searched=(*places.searched, *searched))
