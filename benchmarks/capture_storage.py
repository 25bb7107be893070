"""What capture costs on disk: bytes per attempt and per token id, in the spool, sealed, and in the lake.

    python benchmarks/capture_storage.py [--attempts N] [--seed N] [--folder DIR]

The reference stream: 600 ids an attempt, Zipf over 128,000 words with the exponent that gives 1.03 bytes of entropy an
id, 40 of them a prefix that all attempts share, 50 tenants, every provenance field set. Ids are numbered at random:
where a tokenizer numbers them by frequency, they take less. Exit code 0: all budgets hold; 1: not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.pipeline.content.recompress import recompress
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import AttemptStatus, Environment, FinishReason, ReportPart, RunStream
from weighbridge.schemas.segment import read_manifest

WORDS, IDS, PROMPT, PREFIX, TENANTS = 128_000, 600, 450, 40, 50
EXPONENT = 1.19
ENTROPY = (1.0, 1.06)
BUDGET = {"attempt": 130.0, "spool": 1.9, "lake": 1.5}
DONE = layout.outcome_word(AttemptStatus.SUCCEEDED, FinishReason.STOP, 200, part=ReportPart.WHOLE)
Ids = npt.NDArray[np.int64]


def words(seed: int) -> tuple[npt.NDArray[np.float64], Ids]:
    """The distribution of ranks and a random numbering of them."""
    weight = np.arange(1, WORDS + 1, dtype=np.float64) ** -EXPONENT
    share = weight / weight.sum()
    entropy = float(-(share * np.log2(share)).sum() / 8)
    assert ENTROPY[0] <= entropy <= ENTROPY[1], entropy
    return np.cumsum(share), np.random.default_rng(seed).permutation(WORDS).astype(np.int64)


def streams(attempts: int, seed: int) -> Iterator[Ids]:
    """The ids of each attempt."""
    ranks, numbers = words(seed)
    draw = np.random.default_rng(seed + 1)
    prefix = numbers[np.searchsorted(ranks, draw.random(PREFIX))]
    for _ in range(attempts):
        ids = numbers[np.searchsorted(ranks, draw.random(IDS))]
        ids[:PREFIX] = prefix
        yield ids


def context(tenant: int) -> Context:
    """Every provenance field set."""
    return Context(
        provider="openai", api="openai_chat", model_requested="llama-3.1-8b", model_served="llama-3.1-8b-instruct",
        model_revision="0e9e39f249a16976918f6564b8830bc894c89659", framework="transformers", framework_version="5.24.0",
        tokenizer="tok-3f2a9c", template="tpl-77ab01", strategy_id="0123456789abcdef" * 2, tenant=f"tenant-{tenant}",
        subject_bucket=tenant % 64, task="chat", route="v1/chat/completions", environment=Environment.PRODUCTION,
        stream=False, usage_expected=True,
    )  # fmt: skip


def capture(home: Path, attempts: int, seed: int) -> None:
    """Record the reference load at level 2."""
    recorder = Recorder.start(
        home / "spool", installation="bench-1", key=bytes(range(32)), keys=KeyFolder(home / "keys"),
        limits=Limits(buffer_bytes=256 << 20, spool_bytes=64 << 30, keeper_s=0.1),
    )  # fmt: skip
    parameters = Parameters(max_tokens=150, temperature=0.7, top_p=0.9, n=1)
    names = ("input_computed", "cached_local", "prefill_computed", "output_computed", "output_delivered",
             "forward", "first_token_us", "decode_us", "total_us")  # fmt: skip
    bindings = [recorder.bind(context(n), counts=names, parameters=parameters) for n in range(TENANTS)]
    draw = np.random.default_rng(seed + 2)
    for ids in streams(attempts, seed):
        attempt = bindings[int(draw.integers(TENANTS))].begin()
        cached, made = int(draw.integers(PROMPT)), IDS - PROMPT
        times = draw.lognormal(11, 0.5, 3).astype(int).tolist()
        usage = {
            "prompt_tokens": PROMPT, "completion_tokens": made, "total_tokens": IDS,
            "prompt_tokens_details": {"cached_tokens": cached},
        }  # fmt: skip
        counts = (PROMPT, cached, PROMPT - cached, made, made - 1, PROMPT - cached + made, *times)
        attempt.finish(DONE, counts, usage, ids_expected=IDS)
        runs = [
            Run(attempt.hi, attempt.lo, 0, 0, RunStream.PROMPT, 0, ids[:PROMPT]),
            Run(attempt.hi, attempt.lo, 0, 1, RunStream.OUTPUT, 0, ids[PROMPT:]),
        ]
        assert recorder.offer_ids(attempt, runs) == IDS
        while recorder.content.held > 64 << 20:
            time.sleep(0.01)
    recorder.close()
    assert recorder.losses.total == 0


def size(paths: Iterator[Path]) -> int:
    """Bytes of all files below these paths."""
    return sum(file.stat().st_size for path in paths for file in (path.rglob("*") if path.is_dir() else [path]))


def measure(home: Path, attempts: int, seed: int) -> dict[str, float]:
    """Bytes per attempt sealed; per id in the spool, sealed, in the lake as it came and recompressed."""
    capture(home, attempts, seed)
    spool, tokens = home / "spool", attempts * IDS
    out = {"spool": size(spool.glob("*.content")) / tokens}
    done = seal_spool(spool)
    assert not done.failed
    assert not done.left
    out["sealed"] = size(spool.glob("*-ids.segment")) / tokens
    level1 = [path for path in spool.glob("*.segment") if not path.stem.endswith("-ids")]
    assert sum(read_manifest(path)[0].files["attempt"][0] for path in level1) == attempts
    out["attempt"] = size(iter(level1)) / attempts
    lake = Lake.create(home / "lake")
    ingest(list(spool.glob("*.segment")), lake, key=bytes(range(32)), day=datetime.now(tz=UTC).date())
    days = lake.days("token_run")
    recompress(lake, KeyFolder(home / "keys"), days)
    lake.compact("token_run")
    files = lake.scan("token_run").collect()
    assert int(files["length"].sum()) == tokens
    out["lake"] = sum(file.stat().st_size for file in current(lake)) / tokens
    return out


def current(lake: Lake) -> list[Path]:
    """The data files of the last version of token_run."""
    from deltalake import DeltaTable

    table = DeltaTable(str(Path(lake.root) / "content" / "token_run"))
    return [Path(uri.removeprefix("file://")) for uri in table.file_uris()]


def main() -> int:
    """Print the figures beside their budgets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="weighbridge-storage-", dir=told.folder))
    try:
        found = measure(home, told.attempts, told.seed)
    finally:
        shutil.rmtree(home)
    print(f"{told.attempts:,} attempts, {told.attempts * IDS:,} ids, {TENANTS} tenants")
    for name, text in (
        ("attempt", "bytes per level-1 attempt, sealed (attempt and usage report)"),
        ("spool", "bytes per id in the spool (content file, descriptions included)"),
        ("sealed", "bytes per id in sealed segments"),
        ("lake", "bytes per id in the lake, recompressed (whole Parquet files)"),
    ):
        budget = BUDGET.get(name)
        verdict = "" if budget is None else f"  budget {budget:g}  {'ok' if found[name] <= budget else 'MISSED'}"
        print(f"{found[name]:9.3f}  {text}{verdict}")
    return int(any(found[name] > budget for name, budget in BUDGET.items()))


if __name__ == "__main__":
    sys.exit(main())
