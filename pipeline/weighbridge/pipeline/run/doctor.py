"""What is right and wrong with an installation: its settings, key, lake, prices and the machine below it."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from importlib import metadata
from pathlib import Path

import polars as pl

from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.content.recompress import crowded
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.run.home import SPOOL, read_key
from weighbridge.pipeline.settings import Settings, find_config, load
from weighbridge.schemas.enumerations import GapReason
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.identity import key_id
from weighbridge.schemas.parts import installation_of
from weighbridge.schemas.segment import SUFFIX, read_manifest
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION

OLDEST_PYTHON = (3, 11)
# distribution -> the extra that brings it
_NEEDED = {
    "pyarrow": "",
    "polars": "pipeline",
    "deltalake": "pipeline",
    "narwhals": "pipeline",
    "jinja2": "report",
    "altair": "report",
    "vl-convert-python": "report",
    "xlsxwriter": "report",
}


class Health(StrEnum):
    """The outcome of one check."""

    OK = "ok"
    NOTICE = "notice"  # worth knowing; nothing is wrong
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was looked at, the outcome, what was found, and what to do about it."""

    name: str
    health: Health
    found: str
    cure: str = ""


def examine(config: Path | None, env: Mapping[str, str], *, today: date) -> list[Check]:
    """Look at everything. A check that cannot be made is a problem with the reason; nothing is changed.

    Args:
        config: the settings file or its folder; null looks here and above.
        env: the environment.
        today: the day the age of prices is counted to.
    """
    checks = [*_versions()]
    try:
        settings = load(find_config(config, env), env)
    except WeighbridgeError as error:
        return [*checks, Check("settings", Health.PROBLEM, "cannot be used", str(error))]
    checks += [_settings(settings), *_permissions(settings), _key(settings)]
    checks += _of_lake(settings)
    return [*checks, _prices(settings, today), _disk(settings)]


def healthy(checks: list[Check]) -> bool:
    """Whether none of them is a problem."""
    return not any(check.health is Health.PROBLEM for check in checks)


def _versions() -> Iterator[Check]:
    found = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Check("python", Health.OK, found)
    else:
        yield Check("python", Health.PROBLEM, found, "install Python 3.11 or later")
    yield Check("weighbridge", Health.OK, f"{metadata.version('weighbridge')}, vocabulary {SCHEMA_VERSION}")
    for name, extra in _NEEDED.items():
        try:
            yield Check(name, Health.OK, metadata.version(name))
        except metadata.PackageNotFoundError:
            wanted = f"weighbridge[{extra}]" if extra else "weighbridge"
            yield Check(name, Health.PROBLEM, "not installed", f'run `pip install "{wanted}"`')


def _settings(settings: Settings) -> Check:
    chosen = [f"{name} ({origin})" for name, origin in settings.origins.items() if origin != "default"]
    return Check("settings", Health.OK, "; ".join(chosen) or "all at their defaults")


def _permissions(settings: Settings) -> Iterator[Check]:
    places = [("home folder", settings.folder), ("key folder", settings.key_file.parent)]
    if "://" not in settings.lake:
        places.append(("lake folder", Path(settings.lake)))
    for name, path in places:
        if path.is_dir():
            mode = stat.S_IMODE(path.stat().st_mode)
            health = Health.PROBLEM if mode & 0o077 else Health.OK
            yield Check(name, health, f"mode {mode:04o}", f"run `chmod 700 {path}`" if mode & 0o077 else "")


def _key(settings: Settings) -> Check:
    try:
        return Check("key", Health.OK, f"id {key_id(read_key(settings.key_file))}, mode 0600")
    except WeighbridgeError as error:
        return Check("key", Health.PROBLEM, "cannot be used", str(error))


def _of_lake(settings: Settings) -> list[Check]:
    try:
        lake = Lake.open(settings.lake)
    except WeighbridgeError as error:
        return [Check("lake", Health.PROBLEM, "cannot be opened", str(error))]
    return [
        _attempted("lake", lambda: _readable(lake)),
        _attempted("keys of rows", lambda: _keys(lake, settings)),
        _attempted("undated rows", lambda: _undated(lake)),
        _attempted("quarantine", lambda: _quarantine(lake)),
        _attempted("spool", lambda: _spool(lake, settings.folder / SPOOL)),
        _attempted("token ids", lambda: _token_ids(lake, settings)),
        _attempted("hooks", lambda: _hooks(lake)),
    ]


def _attempted(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except WeighbridgeError as error:
        return Check(name, Health.PROBLEM, "cannot be read", str(error))


def _readable(lake: Lake) -> Check:
    rows = {name: lake.rows(name) for name in TABLES}
    for name, count in rows.items():
        if count:
            lake.scan(name).head(1).collect()
    held = [f"{name} {count:,}" for name, count in rows.items() if count]
    return Check("lake", Health.OK, ", ".join(held) or "empty")


def _keys(lake: Lake, settings: Settings) -> Check:
    """Pseudonyms of two keys never match, so rows of another key fall out of every sum by tenant."""
    found = lake.scan("attempt", columns=["tenant_key_id"]).unique().collect()["tenant_key_id"].drop_nulls()
    try:
        own = key_id(read_key(settings.key_file))
    except WeighbridgeError:
        own = "unknown"
    strange = sorted(set(found) - {own})
    if not strange:
        return Check("keys of rows", Health.OK, "all rows with pseudonyms are under this key")
    cure = "use one key on every host; write those segments again with it, or restore the key they were written with"
    return Check("keys of rows", Health.PROBLEM, f"rows under other keys: {', '.join(strange)}", cure)


def _undated(lake: Lake) -> Check:
    count = lake.scan("attempt", columns=["undated"]).filter(pl.col("undated")).select(pl.len()).collect().item()
    if not count:
        return Check("undated rows", Health.OK, "none")
    return Check("undated rows", Health.NOTICE, f"{count:,}", "they count on the day named with `ingest --day`")


def _quarantine(lake: Lake) -> Check:
    count = lake.rows("quarantine")
    if not count:
        return Check("quarantine", Health.OK, "empty")
    return Check("quarantine", Health.NOTICE, f"{count:,} rows", "see `weighbridge quarantine ls`")


def _token_ids(lake: Lake, settings: Settings) -> Check:
    """Whether the keys that are named can be used, and whether ids wait to be packed."""
    named = key_provider(settings) is not None
    days = len(crowded(lake))
    if not days:
        return Check("token ids", Health.OK, "keys are named" if named else "no keys are named")
    cure = "run `weighbridge content recompress`" if named else "name the keys (content_keys) to have them packed"
    return Check("token ids", Health.NOTICE, f"days that are not packed: {days:,}", cure)


def _hooks(lake: Lake) -> Check:
    """Processes in which an adapter was installed and nothing ever ran through it: is the model in another one?"""
    gaps = lake.scan("gap", columns=["source", "reason"]).filter(reason=str(GapReason.NEVER_CALLED)).collect()
    idle = set(gaps["source"])
    if not idle:
        return Check("hooks", Health.OK, "something ran through every one that ended")
    used = set(lake.scan("attempt", columns=["source"]).unique().collect()["source"])
    beside = {installation_of(source) for source in used}
    never = sorted(source for source in idle - used if installation_of(source) in beside)
    if never:
        cure = "install the adapter in the process that runs the model, and with `part` where several do"
        return Check(
            "hooks", Health.PROBLEM, f"never called, while others of their model were: {', '.join(never)}", cure
        )
    alone = sorted(idle - used)
    if not alone:
        return Check("hooks", Health.OK, "processes that ended without a call had calls before or after")
    cure = "if calls were made in that time, the model runs in another process: install the adapter there"
    return Check("hooks", Health.NOTICE, f"never called: {', '.join(alone)}", cure)


def _prices(settings: Settings, today: date) -> Check:
    try:
        rows = PriceBook.load(settings.prices).rows
    except (WeighbridgeError, OSError) as error:
        return Check("price book", Health.PROBLEM, "cannot be used", str(error))
    if not rows:
        return Check("price book", Health.PROBLEM, "empty", "install the package again")
    unknown = sum(row.checked_on is None for row in rows)
    old = sum(row.checked_on is not None and (today - row.checked_on).days > settings.price_age_days for row in rows)
    newest = max((row.checked_on for row in rows if row.checked_on), default=None)
    found = f"{len(rows):,} rows, last checked {newest or 'never'}"
    if not old and not unknown:
        return Check("price book", Health.OK, found)
    parts = [f"{old:,} checked more than {settings.price_age_days} days ago"] if old else []
    parts += [f"{unknown:,} never checked"] if unknown else []
    cure = "compare them with the provider's page, and put what changed into a price file of your own"
    return Check("price book", Health.NOTICE, f"{found}; {', '.join(parts)}", cure)


def _disk(settings: Settings) -> Check:
    if "://" in settings.lake:
        return Check("disk", Health.OK, "the lake is in an object store")
    place = Path(settings.lake)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free // 2**20
    if not os.access(place, os.W_OK):
        return Check("disk", Health.PROBLEM, f"{place} cannot be written", "run this as its owner, or move the lake")
    if free < settings.free_disk_mib:
        return Check("disk", Health.PROBLEM, f"{free:,} MiB free", f"make room on the disk of {place}")
    return Check("disk", Health.OK, f"{free:,} MiB free")


def _spool(lake: Lake, folder: Path) -> Check:
    """Sealed segments that no row of the lake's account of segments names."""
    sealed = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
    taken = set(lake.scan("segment", columns=["segment"]).collect()["segment"]) if sealed else set()
    waiting = sum(read_manifest(path)[1] not in taken for path in sealed)
    if not waiting:
        return Check("spool", Health.OK, "nothing waits")
    return Check("spool", Health.NOTICE, f"{waiting:,} segments wait", f"take them in: `weighbridge ingest {folder}`")
