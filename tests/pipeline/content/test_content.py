"""The content job: the same ids in fewer bytes under the same keys, and numbers about them that hold by hand."""

from __future__ import annotations

import array
import os
import random
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.content import recompress as packing
from weighbridge.pipeline.content.blocks import Shut, open_day
from weighbridge.pipeline.content.metrics import SCHEMA, run_metrics, summed
from weighbridge.pipeline.content.recompress import PackingError, crowded, recompress
from weighbridge.pipeline.lake import Lake, empty
from weighbridge.schemas.block import BlockName, seal_block
from weighbridge.schemas.keys import KeyFolder, KeyScope
from weighbridge.schemas.packing import pack_planes

DAY = date(2026, 1, 15)
TENANT = "t_0123456789abcdef"
OTHER = "t_fedcba9876543210"
Stored = tuple[int, str, list[int]]  # attempt, stream, ids


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def store(lake: Lake, keys: KeyFolder, runs: Sequence[Stored], tenant: str = TENANT, day: date = DAY) -> str:
    """Put runs into the lake as one block, as the spool seals them; the block's name."""
    block, month = os.urandom(16).hex(), day.isoformat()[:7]
    key_name, key = keys.current(KeyScope(tenant, 3, month))
    ids = array.array("I", [value for _, _, values in runs for value in values]).tobytes()
    sealed = seal_block(key, BlockName("token_run", tenant, 3, month, "ids", block), pack_planes(ids))
    rows, offset, numbers = [], 0, dict.fromkeys((run[0] for run in runs), 0)
    for place, (attempt, stream, values) in enumerate(runs):
        rows.append(
            {
                "attempt_hi": attempt, "attempt_lo": -attempt, "day": day, "source": "agent-1", "child": 0,
                "run": numbers[attempt], "stream": stream, "start": 0, "length": len(values),
                "ciphertext": None if place else sealed, "key_id": key_name, "block": block, "block_offset": offset,
                "tenant": tenant, "subject_bucket": 3, "month": month,
            }
        )  # fmt: skip
        offset += len(values)
        numbers[attempt] += 1
    lake.append("token_run", pl.DataFrame(rows, schema_overrides={**dict(empty("token_run").schema)}))
    return block


def held(lake: Lake, keys: KeyFolder) -> dict[tuple[int, str], list[int]]:
    """All ids that open: (attempt, stream) -> ids."""
    out = {}
    for block in open_day(lake.scan("token_run").collect(), keys):
        for attempt, stream, offset, length in block.rows.select(
            "attempt_hi", "stream", "block_offset", "length"
        ).iter_rows():
            out[attempt, stream] = block.ids[offset : offset + length].tolist()
    return out


def test_small_blocks_become_one_with_the_same_ids_and_fewer_bytes(lake: Lake, keys: KeyFolder) -> None:
    draw = random.Random(1)
    words = [draw.randrange(128_000) for _ in range(2_000)]
    runs: list[Stored] = [
        (number, "output", draw.choices(words, [1 / (rank + 1) for rank in range(2_000)], k=600))
        for number in range(1, 61)
    ]
    for at in range(0, 60, 6):
        store(lake, keys, runs[at : at + 6])
    before = held(lake, keys)
    done = recompress(lake, keys, [DAY])
    assert (done.ids, done.blocks_before, done.blocks_after) == (36_000, 10, 1)
    assert done.bytes_after < 0.75 * done.bytes_before
    assert held(lake, keys) == before == {(number, stream): ids for number, stream, ids in runs}
    rows = lake.scan("token_run").collect()
    assert rows.filter(pl.col("ciphertext").is_not_null()).select("block_offset").rows() == [(0,)]
    assert rows["key_id"].n_unique() == rows["block"].n_unique() == 1


def test_a_second_time_changes_nothing_and_late_ids_are_taken_in(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "prompt", [5, 6, 7])])
    recompress(lake, keys, [DAY])
    version, digest = lake.version("token_run"), lake.digest("token_run")
    assert recompress(lake, keys, [DAY]).days == []
    assert (lake.version("token_run"), lake.digest("token_run")) == (version, digest)
    store(lake, keys, [(2, "prompt", [8])])
    done = recompress(lake, keys, [DAY])
    assert (done.blocks_before, done.blocks_after, done.days) == (2, 1, [DAY])
    assert held(lake, keys) == {(1, "prompt"): [5, 6, 7], (2, "prompt"): [8]}


def test_tenants_and_keys_are_never_mixed(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "prompt", [1])])
    store(lake, keys, [(2, "prompt", [2])], OTHER)
    keys.rotate(KeyScope(TENANT, 3, "2026-01"))
    store(lake, keys, [(3, "prompt", [3])])
    assert recompress(lake, keys, [DAY]).blocks_after == 3
    keys.destroy(f"{TENANT}.3.2026-01.ids.1")
    blocks = open_day(lake.scan("token_run").collect(), keys)
    assert sorted(str(block.shut) for block in blocks) == ["None", "None", "no_key"]
    assert sorted(value for block in blocks for value in block.ids.tolist()) == [2, 3]


def test_what_does_not_open_is_left_and_counted(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "prompt", [1, 2]), (2, "prompt", [3])])
    moved = store(lake, keys, [(3, "prompt", [4])])
    lost = store(lake, keys, [(4, "prompt", [5])])
    store(lake, keys, [(5, "prompt", [6])], OTHER)
    keys.destroy(f"{OTHER}.3.2026-01.ids.1")
    rows = lake.scan("token_run").collect().with_columns(
        subject_bucket=pl.when(pl.col("block") == moved).then(9).otherwise("subject_bucket"),
        ciphertext=pl.when(pl.col("block") != lost).then("ciphertext"),
    )  # fmt: skip
    lake.replace("token_run", rows, days=[DAY])
    done = recompress(lake, keys, [DAY])
    assert done.shut == {Shut.DAMAGED: 1, Shut.NO_CIPHERTEXT: 1, Shut.NO_KEY: 1}
    assert (done.ids, done.blocks_before, done.blocks_after) == (3, 1, 1)
    after = lake.scan("token_run").collect()
    shut = after.filter(pl.col("attempt_hi") > 2).sort("attempt_hi")
    assert shut.equals(rows.filter(pl.col("attempt_hi") > 2).sort("attempt_hi").select(shut.columns))


def test_runs_of_one_block_that_are_bound_to_different_things_are_damage(lake: Lake, keys: KeyFolder) -> None:
    """Nothing is opened for them: with another first run the block would be bound to another tenant."""
    store(lake, keys, [(1, "prompt", [1, 2]), (2, "prompt", [3])])
    rows = lake.scan("token_run").collect()
    mixed = rows.with_columns(tenant=pl.when(pl.col("attempt_hi") == 2).then(pl.lit(OTHER)).otherwise("tenant"))
    lake.replace("token_run", mixed, days=[DAY])
    assert recompress(lake, keys, [DAY]).shut == {Shut.DAMAGED: 1}
    nowhere = rows.with_columns(block_offset=pl.when(pl.col("attempt_hi") == 1).then("block_offset"))
    lake.replace("token_run", nowhere, days=[DAY])
    done = recompress(lake, keys, [DAY])
    assert (done.shut, done.unsound, done.days) == ({Shut.DAMAGED: 1}, True, [])


def test_a_block_that_would_not_give_back_its_ids_changes_nothing(
    lake: Lake, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(lake, keys, [(1, "prompt", [1, 2, 3])])
    store(lake, keys, [(2, "prompt", [4])])
    before = lake.version("token_run"), lake.digest("token_run")
    monkeypatch.setattr(packing, "pack_ranks", lambda ids: pack_planes(ids[:-4]))
    with pytest.raises(PackingError, match="does not give back its ids"):
        recompress(lake, keys, [DAY])
    assert (lake.version("token_run"), lake.digest("token_run")) == before


def test_each_key_is_asked_for_once_a_day(lake: Lake, keys: KeyFolder) -> None:
    """A key service is a process for each question."""
    asked = []

    class Counting:
        def get(self, name: str) -> bytes:
            asked.append(name)
            return keys.get(name)

    for number in range(1, 5):
        store(lake, keys, [(number, "prompt", [number])])
    store(lake, keys, [(5, "prompt", [5])], OTHER)
    keys.destroy(f"{OTHER}.3.2026-01.ids.1")
    assert recompress(lake, Counting(), [DAY]).ids == 4
    assert sorted(asked) == [f"{TENANT}.3.2026-01.ids.1", f"{OTHER}.3.2026-01.ids.1"]


def test_days_with_more_blocks_than_their_ids_need_are_known_unopened(
    lake: Lake, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert crowded(lake) == []
    store(lake, keys, [(1, "prompt", [1])])
    store(lake, keys, [(2, "prompt", [2])], OTHER)
    assert crowded(lake) == [], "two tenants are two blocks"
    later = date(2026, 1, 17)
    for number in (3, 4):
        store(lake, keys, [(number, "prompt", [number])], day=later)
    assert crowded(lake) == [later]
    recompress(lake, keys, [later])
    assert crowded(lake) == []
    monkeypatch.setattr(packing, "BLOCK_IDS", 5)
    for number in range(5, 9):
        store(lake, keys, [(number, "prompt", [number] * 4)], day=later)
    assert crowded(lake) == [later], "18 ids in 5 blocks, and 4 blocks have room for them"
    done = recompress(lake, keys, [later])
    assert (done.ids, done.blocks_before, done.blocks_after) == (18, 5, 4)
    assert crowded(lake) == []
    assert len(held(lake, keys)) == 8


def test_other_days_are_left_alone(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "prompt", [1])])
    store(lake, keys, [(2, "prompt", [2])], day=date(2026, 1, 16))
    assert recompress(lake, keys, [date(2026, 1, 16)]).days == [date(2026, 1, 16)]
    assert recompress(lake, keys, [DAY]).days == [DAY]
    assert recompress(lake, keys, [date(2026, 1, 17)]).days == []


def test_metrics_by_hand(lake: Lake, keys: KeyFolder) -> None:
    # 1 2 3 4 | 2 3 4 1 | 3 4 1 2 | 4 1 2 3 | 1 2 3 4 again: 5 grams, 1 repeats.
    store(lake, keys, [(1, "prompt", [9, 9, 9]), (1, "output", [1, 2, 3, 4, 1, 2, 3, 4]), (2, "output", [7] * 10)])
    lake.append("attempt", pl.DataFrame(
        [
            {"attempt_hi": n, "attempt_lo": -n, "day": DAY, "source": "agent-1", "tenant": TENANT, "task": "chat",
             "route": "unassigned", "status": "succeeded", "input_computed": i, "output_computed": o, "revision": 0}
            for n, i, o in ((1, 3, 9), (2, None, None))
        ],
        schema_overrides={"revision": pl.Int32},
    ))  # fmt: skip
    found = run_metrics(lake, keys)
    assert dict(found.schema) == dict(SCHEMA)
    assert found.drop("day", "source", "attempt_lo", "child").rows() == [
        (1, "output", 8, 8, 4, 5, 1, 9, False),
        (1, "prompt", 3, 3, 1, 0, 0, 3, True),
        (2, "output", 10, 10, 1, 7, 6, None, None),
    ]
    recompress(lake, keys, [DAY])
    assert run_metrics(lake, keys).equals(found)


def test_metrics_of_all_attempts_together(lake: Lake, keys: KeyFolder) -> None:
    """One attempt has as many ids as the engine counted, one has not, of one nothing opens."""
    for number, counted in ((1, 10), (2, 9), (3, 4)):
        lake.append("attempt", pl.DataFrame(
            [{"attempt_hi": number, "attempt_lo": -number, "day": DAY, "source": "agent-1", "tenant": TENANT,
              "task": "chat", "route": "unassigned", "status": "succeeded", "output_computed": counted, "revision": 0}],
            schema_overrides={"revision": pl.Int32},
        ))  # fmt: skip
    store(lake, keys, [(1, "output", [7] * 10), (2, "output", [1, 2, 3, 4, 5, 1, 2, 3, 4, 5])])
    store(lake, keys, [(3, "output", [8] * 4)], OTHER)
    keys.destroy(f"{OTHER}.3.2026-01.ids.1")
    (row,) = summed(run_metrics(lake, keys)).to_dicts()
    assert row == {
        "source": "agent-1", "stream": "output", "streams": 3, "ids": 24, "opened": 20, "whole": 2, "distinct": 6,
        "grams": 14, "repeated": 8, "met": 2, "unmet": 1,
    }  # fmt: skip
    assert summed(run_metrics(lake, keys, last=date(2025, 1, 1))).is_empty()


def test_metrics_of_ids_that_do_not_open_are_unknown_and_not_zero(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "output", [1, 2, 3])])
    keys.destroy(f"{TENANT}.3.2026-01.ids.1")
    (row,) = run_metrics(lake, keys).rows(named=True)
    assert (row["ids"], row["opened"], row["distinct"], row["grams"], row["repeated"]) == (3, 0, None, None, None)


def test_metrics_of_no_days(lake: Lake, keys: KeyFolder) -> None:
    store(lake, keys, [(1, "output", [1, 2, 3])])
    assert run_metrics(lake, keys, first=date(2026, 1, 16)).is_empty()
    assert run_metrics(lake, keys, last=DAY).height == 1
