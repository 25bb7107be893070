"""Ids of imported records into encrypted blocks, as an agent writes them: in clear they lie nowhere.

One block per (tenant, UTC month of the day) and so many ids, under the key of that tenant and month. Without a key the
ids are dropped and counted as lost under `no_key`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from weighbridge.pipeline.ingest.token_records import Told
from weighbridge.schemas.block import BlockName, seal_block
from weighbridge.schemas.enumerations import GapReason, RunStream
from weighbridge.schemas.keys import KeyProvider, KeyScope, KeyUnavailableError
from weighbridge.schemas.packing import pack_planes

TABLE, KIND = "token_run", "ids"
BUCKET = 0  # these logs name no data subjects
_BLOCK = 4 << 20  # ids
_ID = 4  # bytes


@dataclass(slots=True)
class _Open:
    """A block that is being filled."""

    runs: list[dict[str, object]] = field(default_factory=list)
    ids: bytearray = field(default_factory=bytearray)


@dataclass(slots=True)
class TokenBlocks:
    """The runs of one file while they are gathered.

    Attributes:
        keys: who gives the keys, null for nobody.
        runs: rows of `token_run`; gaps: rows of `gap`. Complete after `close`.
    """

    keys: KeyProvider | None
    runs: list[dict[str, object]] = field(default_factory=list)
    gaps: list[dict[str, object]] = field(default_factory=list)
    _open: dict[tuple[str, str], _Open] = field(default_factory=dict)

    def add(self, place: Mapping[str, object], tenant: str, told: Told) -> None:
        """Add the ids of a record.

        Args:
            place: day, source and segment_row; the key of the attempt is put beside it later.
            tenant: pseudonym of its tenant, or unassigned.
            told: what it tells. Several choices are runs of their children.
        """
        if not told.held:
            return
        if self.keys is None:
            self._lost(place, told.held)
            return
        day = place["day"]
        month = f"{day:%Y-%m}" if isinstance(day, date) else ""
        block = self._open.setdefault((tenant, month), _Open())
        several = len(told.choices) > 1
        held = [(RunStream.PROMPT, 0, told.prompt)]
        held += [
            (RunStream.OUTPUT, child if several else 0, choice.ids) for child, choice in enumerate(told.choices, 1)
        ]
        runs: Counter[int] = Counter()
        for stream, child, ids in held:
            if ids:
                described = {"child": child, "run": runs[child], "stream": str(stream), "start": 0}
                length = len(ids) // _ID
                block.runs.append({**place, **described, "length": length, "block_offset": len(block.ids) // _ID})
                block.ids += ids
                runs[child] += 1
        if len(block.ids) >= _BLOCK * _ID:
            self._seal(tenant, month)

    def close(self) -> None:
        """Seal what is still open."""
        for tenant, month in list(self._open):
            self._seal(tenant, month)

    def _seal(self, tenant: str, month: str) -> None:
        block = self._open.pop((tenant, month))
        assert self.keys is not None
        try:
            key_name, key = self.keys.current(KeyScope(tenant, BUCKET, month, KIND))
        except KeyUnavailableError:
            lost: dict[object, int] = {}
            for run in block.runs:
                lost[run["segment_row"]] = lost.get(run["segment_row"], 0) + int(str(run["length"]))
            for run in block.runs:
                if (ids := lost.pop(run["segment_row"], None)) is not None:
                    self._lost(run, ids)
            return
        name = BlockName(TABLE, tenant, BUCKET, month, KIND, os.urandom(16).hex())
        sealed = seal_block(key, name, pack_planes(bytes(block.ids)))
        about = {"key_id": key_name, "block": name.block, "tenant": tenant, "subject_bucket": BUCKET, "month": month}
        self.runs += [{**run, **about, "ciphertext": None if at else sealed} for at, run in enumerate(block.runs)]

    def _lost(self, place: Mapping[str, object], ids: int) -> None:
        named = {name: place[name] for name in ("day", "source", "segment_row")}
        self.gaps.append({**named, "reason": str(GapReason.NO_KEY), "attempts": 1, "tokens": ids})
