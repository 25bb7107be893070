"""What to look for after an erasure, and where: gathered before anything goes.

Looked for is what must be nowhere any more: identifiers of other systems and their hashes, the bytes of the keys, and
where billing counts go too, the ids of attempts and requests and the tenant's pseudonym. What somebody else has as well
is not looked for, nor what a hold keeps.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.facts import FACTS
from weighbridge.pipeline.retention.judge import HELD
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.search import Found, Needles, Unread, search, within_file
from weighbridge.pipeline.retention.subject import HIT, KEY, REQUEST, Reach
from weighbridge.schemas.keys import KeyFolder, KeyUnavailableError

# A shorter identifier is found by chance.
_SHORTEST = 8
_ID, _ALIAS, _REQUEST = "an attempt id", "the hash of an identifier", "a request id"
_TENANT, _FOREIGN, _KEY = "the pseudonym of the tenant", "an identifier of another system", "a key"
_HALVES = ("hi", "lo")


def needles_of(erasing: Erasing) -> tuple[Needles, tuple[str, ...]]:
    """What must be nowhere after an erasure; and in words what cannot be looked for."""
    unsearched: list[str] = []
    texts = _keys(erasing, unsearched) | _foreign(erasing, unsearched)
    ids = {_ALIAS: _alone(erasing, "alias", ("alias_hi", "alias_lo"))}
    if erasing.request.billing_too:
        subject = erasing.reach.subject
        kept = _held_attempts(erasing)
        ids[_ID] = _halves(erasing.reach.attempts.join(kept, on=KEY, how="anti"), KEY)
        ids[_REQUEST] = _alone(erasing, "attempt", REQUEST)
        if kept.height:
            unsearched.append("a hold keeps rows of it; those are not looked for")
        elif subject.tenant is not None and subject.bucket is None and not _since(erasing):
            texts[subject.tenant.encode()] = _TENANT
    return Needles(texts, ids), tuple(unsearched)


def shown_by(erasing: Erasing) -> Needles:
    """What shows on a page that it is about the subject."""
    subject = erasing.reach.subject
    texts = {subject.tenant.encode(): _TENANT} if subject.tenant is not None and subject.bucket is None else {}
    return Needles(texts, {_ID: _halves(erasing.reach.attempts, KEY)})


def pages(places: Places, needles: Needles) -> list[Path]:
    """Files and folders of reports in which something is found."""
    found = []
    for folder in places.reports:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path in places.reports:  # a folder of reports inside another one
                continue
            files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
            if any(within_file(each, needles) for each in files):
                found.append(path)
    return found


def look_for(places: Places, needles: Needles) -> tuple[list[Found], list[str]]:
    """Search every place; what was found, and in words what could not be searched."""
    unsearched: list[str] = []
    unread: Unread = {}
    root = places.lake.root.removeprefix("file://")
    folders = [*places.spools, *places.reports, places.ledger.folder, *places.searched]
    folders += [folder for folder in (places.closes, places.acks) if folder is not None]
    if "://" in root:
        unsearched.append("the lake lies in an object store: its objects, and earlier versions the store keeps of them")
    else:
        folders.append(Path(root))
    if isinstance(places.keys, KeyFolder):
        # The names of keys tell the tenant, also those of destroyed ones: only keys themselves are looked for there.
        keys = needles.only(_KEY)
        found = search([places.keys.folder], keys, unread) if keys.any and places.keys.folder.is_dir() else []
    else:
        found = []
    there = [folder for folder in dict.fromkeys(folders) if folder.exists()]
    found += search(there, needles, unread)
    return found, [*unsearched, *(f"{path}: {why}" for path, why in sorted(unread.items()))]


def _keys(erasing: Erasing, unsearched: list[str]) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    keys = erasing.places.keys
    names = [name for names in erasing.keys.values() for name in names]
    for name in names:
        try:
            assert keys is not None
            key = keys.get(name)
        except KeyUnavailableError:
            unsearched.append(f"key {name}: it was gone before")
            continue
        found |= {key: _KEY, key.hex().encode(): _KEY}
    return found


def _foreign(erasing: Erasing, unsearched: list[str]) -> dict[bytes, str]:
    rows = _free(erasing, "foreign_id", ["value"])
    mine = rows.filter("_mine")["value"].unique()
    others = rows.filter(~pl.col("_mine"))["value"].unique()
    alone = mine.filter(~mine.is_in(others.implode()))
    short = alone.filter(alone.str.len_bytes() < _SHORTEST)
    if short.len():
        unsearched.append(f"{short.len()} identifiers of other systems are too short to be told from chance")
    return {value.encode(): _FOREIGN for value in alone.filter(alone.str.len_bytes() >= _SHORTEST)}


def _alone(erasing: Erasing, table: str, pair: tuple[str, str]) -> pl.DataFrame:
    """Pairs of integers that rows of the subject have and no others."""
    rows = _free(erasing, table, list(pair)).drop_nulls(pair)
    mine = rows.filter("_mine").select(pair).unique()
    return _halves(mine.join(rows.filter(~pl.col("_mine")).select(pair).unique(), on=pair, how="anti"), pair)


def _free(erasing: Erasing, table: str, columns: list[str]) -> pl.DataFrame:
    """Columns of a table, and in `_mine` whether the row goes."""
    names = list(dict.fromkeys([*Reach.read(table), *columns]))
    rows = erasing.judged(FACTS[table], erasing.lake.scan(table, columns=names))
    return rows.select(*columns, _mine=pl.col(HIT) & ~pl.col(HELD)).collect(engine="streaming")


def _held_attempts(erasing: Erasing) -> pl.DataFrame:
    rows = erasing.judged(FACTS["attempt"], erasing.lake.scan("attempt", columns=Reach.read("attempt")))
    return rows.filter(pl.col(HIT) & pl.col(HELD)).select(KEY).unique().collect(engine="streaming")


def _since(erasing: Erasing) -> bool:
    """Whether the tenant has attempts of later days, which stay under its pseudonym."""
    last = erasing.lake.scan("attempt", columns=["tenant", "day"]).filter(
        pl.col("tenant") == erasing.reach.subject.tenant, pl.col("day") > erasing.request.last
    )
    return bool(last.head(1).collect().height)


def _halves(pairs: pl.DataFrame, names: tuple[str, str]) -> pl.DataFrame:
    return pairs.select(pl.col(name).alias(half) for name, half in zip(names, _HALVES, strict=True))
