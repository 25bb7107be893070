"""Close a month: freeze its rows, figures and all they rest on in a pack, and enter its root in the lake.

The pack is renamed into place before the lake names it, so a month is closed when its row is there, and whatever cut an
earlier attempt short is done again with the same outcome. A closed month is never opened: see `adjust`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close import gates, month_figures, month_rows, pins
from weighbridge.pipeline.close.draft import Draft, draft
from weighbridge.pipeline.close.figures import plain
from weighbridge.pipeline.close.gates import ClosePolicy, Refusal
from weighbridge.pipeline.close.layout import ALL, CLOSED, FIGURES, MANIFEST, SEAL, TENANT, PartName, pin
from weighbridge.pipeline.close.manifest import Manifest
from weighbridge.pipeline.close.plain import document, sha256
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.close.seal import Seal
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.reconcile.life.carried import carried
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import checked, ends
from weighbridge.pipeline.reconcile.reconcile import prices_used
from weighbridge.schemas import canonical
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, key_id
from weighbridge.schemas.tables import TABLES

NO_SETTINGS: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class CloseResult:
    """What became of a close.

    Attributes:
        period: the month.
        closed: whether it is closed now.
        new: whether this call closed it.
        pack: the folder of the pack, null where the month is not closed or its pack is not there.
        root: the root to be kept elsewhere; null where the month is not closed.
        figures_digest: digest of the figures.
        rows: rows of the month in the pack.
        refused: the gates that are closed; none where the month is.
    """

    period: str
    closed: bool
    new: bool
    pack: Path | None = None
    root: str | None = None
    figures_digest: str | None = None
    rows: int = 0
    refused: tuple[Refusal, ...] = ()


def close_month(
    lake: Lake,
    *,
    period: str,
    packs: Path,
    book: PriceBook,
    key: bytes,
    by: str,
    now: datetime,
    policy: ClosePolicy | None = None,
    gate: bool | None = None,
    settings: Mapping[str, object] = NO_SETTINGS,
    early: str | None = None,
) -> CloseResult:
    """Close a month, or say why it cannot be closed. A month that is closed already is left as it is.

    Args:
        lake: the lake; nobody else writes meanwhile.
        period: the UTC month, `YYYY-MM`.
        packs: folder of the close packs; made if it is not there.
        book: the prices of now; the month must be priced with them.
        key: the pseudonym key of the installation; salts are made from it, and it is in no file.
        by: who closes, a name without blanks.
        now: the time; it decides whether the month is over, and stands in the seal alone.
        policy: when a month may be closed.
        gate: whether the gate of validation is open; null: its findings in the lake decide.
        settings: what else decided the figures, as plain values; never a key.
        early: why the month is closed before its time; only where it is.

    Raises:
        ConfigError: the month or the name cannot be used.
        LakeBusyError: another process is writing.
        LakeError: lake or pack cannot be written; the month is not closed, the same call closes it.
    """
    checked(period)
    if not NAME.fullmatch(by):
        raise ConfigError(f"{by!r} cannot be used as a name; letters, digits and . _ : / @ - are allowed, no blanks")
    if early is not None and not early.strip():
        raise ConfigError("a month that is closed before its time needs a reason; say in a few words why")
    rules = policy or ClosePolicy()
    with lake.lock():
        held = row_of(lake, period)
        if held is not None:
            return _closed(held, packs, new=False)
        refused = tuple(_refusals(lake, period, book, key, now.astimezone(UTC), rules, gate, early))
        if refused:
            return CloseResult(period, closed=False, new=False, refused=refused)
        with draft(packs, period, key) as pack:
            taken = carried(lake, period, rules.materiality, ends(period)[1])["finding_id"].to_list()
            manifest = _fill(pack, lake, period, book, {"key_id": key_id(key), **settings}, taken)
            seal = Seal(manifest.root(), now.astimezone(UTC), by, early is not None)
            pack.write(SEAL, seal.to_json(), listed=False)
        row = _row(manifest, seal, early)
        lake.append("close", pl.DataFrame([row], schema=polars_schema("close")))
        return _closed(row, packs, new=True)


def row_of(lake: Lake, period: str) -> dict[str, Any] | None:
    """The row of a closed month, null where it is not closed."""
    rows = lake.scan("close").filter(pl.col("period") == period).collect().to_dicts()
    return rows[0] if rows else None


def _refusals(
    lake: Lake,
    period: str,
    book: PriceBook,
    key: bytes,
    now: datetime,
    policy: ClosePolicy,
    gate: bool | None,
    early: str | None,
) -> Iterator[Refusal]:
    """Every gate that is closed; what rests on rows that are not there is not asked for."""
    if early is None:
        yield from gates.too_early(period, now.date(), policy)
    missing = tuple(gates.nothing_there(lake, period))
    yield from missing
    if not missing:
        yield from gates.gate_closed(gate, lake, period, now.date())
        waiting = tuple(gates.still_open(lake, period))
        yield from waiting
        if not waiting:
            yield from gates.out_of_date(lake, period, book, key_id(key), policy)
        yield from gates.open_findings(lake, period, now.date(), policy)


def _fill(
    pack: Draft,
    lake: Lake,
    period: str,
    book: PriceBook,
    settings: Mapping[str, object],
    taken: Collection[str],
) -> Manifest:
    """Write everything but the seal; `taken` are findings of earlier months that are carried into this one."""
    month = Month(Replay(lake), period, prices_used(lake))
    found = month_figures.figures(lake, period)
    numbers = month_figures.numbers_of(found)
    for name, rows in month_rows.parts_of(month, taken):
        pack.add(name, CLOSED[name.table], rows)
    if numbers:
        tenants = pl.DataFrame({"number": list(numbers.values()), "tenant": list(numbers)})
        pack.add(PartName(TENANT.name, ALL), TENANT, tenants)
    figures = document(plain(month_figures.numbered(found, numbers), period))
    pack.write(FIGURES, figures)
    pinned = {
        "code": pins.code(),
        "lock": pins.lock(),
        "prices": pins.prices(book, list(month.prices.rows)),
        "rules": pins.rules(),
        "settings": dict(settings),
    }
    for pinned_name, content in pinned.items():
        pack.write(pin(pinned_name), document(content))
    manifest = Manifest(
        period=period,
        code_version=pinned["code"]["version"],
        tables={name: pack.table(CLOSED[name]) for name in sorted(pack.parts)},
        digests={
            "figures": sha256(figures),
            "prices": prices_digest(lake.scan("price").filter(pl.col("price_id").is_in(list(month.prices.rows)))),
            "code": pinned["code"]["sha256"],
            **{name: pins.digest(pinned[name]) for name in ("rules", "lock", "settings")},
        },
        files=pack.files,
    )
    pack.write(MANIFEST, manifest.to_json(), listed=False)
    return manifest


def prices_digest(rows: pl.LazyFrame) -> str:
    """The canonical digest of rows of the table `price`."""
    return canonical.digest(canonical.rows(TABLES["price"], rows.collect().to_arrow()))


def _row(manifest: Manifest, seal: Seal, early: str | None) -> dict[str, Any]:
    return {
        "period": manifest.period,
        "root": seal.root,
        **{f"{name}_digest": manifest.digests[name] for name in ("figures", "prices", "rules", "code", "lock")},
        "code_version": manifest.code_version,
        "rows": manifest.rows,
        "closed_at": seal.closed_at,
        "closed_by": seal.closed_by,
        "early_reason": early,
    }


def _closed(row: Mapping[str, Any], packs: Path, *, new: bool) -> CloseResult:
    folder = packs / row["period"]
    return CloseResult(
        row["period"],
        closed=True,
        new=new,
        pack=folder if folder.is_dir() else None,
        root=row["root"],
        figures_digest=row["figures_digest"],
        rows=row["rows"],
    )
