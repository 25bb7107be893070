"""The whole way: captured, sealed, shipped, ingested, acknowledged, deleted, recompressed, measured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.spool import main
from weighbridge.pipeline.content.metrics import run_metrics
from weighbridge.pipeline.content.recompress import recompress
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.enumerations import AttemptStatus, RunStream

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)


def test_from_the_serving_process_to_numbers(recorder: Recorder, keys: KeyFolder, key: bytes, tmp_path: Path) -> None:
    binding = recorder.bind(Context(tenant="acme", subject_bucket=5), counts=("input_computed", "output_computed"))
    for number in range(20):
        attempt = binding.begin()
        attempt.finish(DONE, (3, 6), None, ids_expected=9)
        runs = [
            Run(attempt.hi, attempt.lo, 0, 0, RunStream.PROMPT, 0, [1, 2, 3]),
            Run(attempt.hi, attempt.lo, 0, 1, RunStream.OUTPUT, 0, [number] * 6),
        ]
        assert recorder.offer_ids(attempt, runs) == 9
    recorder.close()
    spool, there = recorder.spool, tmp_path / "there"
    assert [main(["seal", str(spool)]), main(["ship", str(spool), str(there)])] == [0, 0]
    assert len(list(spool.iterdir())) == 2, "not acknowledged yet"
    lake = Lake.create(tmp_path / "lake")
    result = ingest([there], lake, key=key, day=datetime.now(tz=UTC).date())
    assert sum(file.rows_out for file in result.files) == 20 + 40
    assert main(["ship", str(spool), str(there)]) == 0
    assert list(spool.iterdir()) == []
    before = run_metrics(lake, keys)
    assert before.select("ids", "distinct", "grams", "repeated", "met").unique().sort("ids").rows() == [
        (3, 3, 0, 0, True),
        (6, 1, 3, 2, True),
    ]
    assert recompress(lake, keys, lake.days("token_run")).ids == 180
    assert run_metrics(lake, keys).equals(before)


def test_ids_the_agent_lost_are_its_own_word_and_ids_lost_on_the_way_are_a_finding(
    recorder: Recorder, key: bytes, tmp_path: Path
) -> None:
    """Of six attempts two hand nothing over although they announce it; then the segment of the others' ids is lost."""
    binding = recorder.bind(Context(tenant="acme", subject_bucket=5), counts=("output_computed",))
    for number in range(6):
        attempt = binding.begin()
        attempt.finish(DONE, (9,), None, ids_expected=9)
        if number < 4:
            run = Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, [number] * 9)
            assert recorder.offer_ids(attempt, [run]) == 9
    recorder.close()
    assert main(["seal", str(recorder.spool)]) == 0
    (ids,) = recorder.spool.glob("*-ids.segment")
    assert len(list(recorder.spool.glob("*-missing.segment"))) == 1
    late = ids.rename(tmp_path / ids.name)
    lake = Lake.create(tmp_path / "lake")

    def lost() -> dict[str, tuple[int | None, int | None, str]]:
        result = reconcile(lake, ids_grace_days=0)
        return {
            finding.code: (finding.rows, finding.difference, str(finding.confidence))
            for finding in result.findings
            if finding.code in {"gap_records", "ids_missing"}
        }

    today = datetime.now(tz=UTC).date()
    ingest([recorder.spool], lake, key=key, day=today)
    assert lost() == {"gap_records": (1, 2, "certain"), "ids_missing": (6, -36, "ambiguous")}
    ingest([late], lake, key=key, day=today)
    assert lost() == {"gap_records": (1, 2, "certain")}
