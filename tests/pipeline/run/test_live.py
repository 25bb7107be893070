"""Real attempts, served and weighed: every difference has the cause its call was made for."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.capture.demo_client import CHOICES, LENGTH, QUESTIONS
from weighbridge.pipeline.run import live_servers
from weighbridge.pipeline.run.live import LiveResult, live
from weighbridge.pipeline.run.live_calls import EXPECTED, ONLY_ALONE, OWN, SERVE, Weighed, as_frame
from weighbridge.pipeline.run.live_servers import SERVE_NEEDED, LiveError, missing_packages
from weighbridge.schemas.enumerations import Direction, WithheldReason
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

IN, OUT = Direction.INPUT, Direction.OUTPUT
# Two servers, a model and some ninety calls, made once on one worker; `.ci/run` looks at all that came of them.
one_run = pytest.mark.xdist_group("live")
TIMES = Counter({"refused": 1, "failed": 1, "retry": 2})  # of every other kind one for each question


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> LiveResult:
    """One live demonstration."""
    if missing_packages():
        pytest.skip(f"not installed: {', '.join(missing_packages())}")
    return live(tmp_path_factory.mktemp("live") / "home")


@pytest.fixture
def with_serve(served: LiveResult) -> LiveResult:
    """The demonstration where `transformers serve` took part."""
    if served.serve is None and missing_packages(SERVE_NEEDED):
        pytest.skip(f"{served.left_out} (extra `serving`)")
    assert served.serve is not None, served.left_out
    return served


def rows(served: LiveResult, server: str, kind: str, direction: Direction) -> list[Weighed]:
    return [r for r in served.weighed if (r.server, r.kind, r.direction) == (server, kind, direction)]


def attempts(served: LiveResult, source: str) -> dict[str, dict[str, Any]]:
    """What one agent wrote, by attempt."""
    found = served.home.lake().scan("attempt").filter(pl.col("source") == source).collect()
    return {AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex(): row for row in found.to_dicts()}


def holds_for_all(served: LiveResult, kinds: set[tuple[str, str]]) -> None:
    """Every kind of call was made, has its own cause in both directions, and nothing is left over."""
    assert {(row.server, row.kind) for row in served.weighed} == kinds
    for (server, kind), wanted in EXPECTED.items():
        if (server, kind) not in kinds:
            continue
        for direction, cause in zip((IN, OUT), wanted, strict=True):
            mine = rows(served, server, kind, direction)
            assert len(mine) == (TIMES[kind] or len(QUESTIONS))
            causes = {found for row in mine for found in row.causes}
            assert causes == ({cause} if cause else set()), (server, kind, direction)
            assert {row.residual for row in mine} == ({None} if kind in {"refused", "failed"} else {0})
    assert served.unexplained == []


@pytest.mark.system
@one_run
def test_every_kind_of_call_has_its_cause_and_no_residual(served: LiveResult) -> None:
    own = {pair for pair in EXPECTED if pair[0] == OWN}
    holds_for_all(served, own if served.serve is None else set(EXPECTED) - ONLY_ALONE)


@pytest.mark.system
@one_run
def test_both_sides_agree_where_nothing_is_peculiar(with_serve: LiveResult) -> None:
    """Through the header, or where the client has no agent, through the id of the answer."""
    for kind in ("plain", "stream", "stop string", "end token", "known by its answer"):
        for direction in (IN, OUT):
            for row in rows(with_serve, SERVE, kind, direction):
                assert row.computed == row.reported is not None, (kind, direction)
    assert {row.computed for row in rows(with_serve, SERVE, "plain", OUT)} == {LENGTH}
    mine = {row.attempt for row in rows(with_serve, SERVE, "known by its answer", OUT)}
    assert mine <= set(attempts(with_serve, "serve-engine"))
    assert not mine & set(attempts(with_serve, "demo-client"))
    assert mine == set(attempts(with_serve, "recorded-answers"))


@pytest.mark.system
@one_run
def test_what_was_withheld_is_what_a_recount_cannot_find(with_serve: LiveResult) -> None:
    for row in rows(with_serve, SERVE, "end token", OUT):
        assert row.withheld == {WithheldReason.END_TOKEN: 1}
        assert row.computed is not None
        assert row.recounted == row.computed - 1
    for row in rows(with_serve, SERVE, "aborted stream", OUT):  # the engine is ended when the next token comes
        assert row.reported is None
        assert row.computed is not None
        assert row.recounted is not None
        assert 0 < row.recounted <= row.computed < 400
        assert row.difference == -row.computed


@pytest.mark.system
@one_run
def test_the_small_server_differs_where_it_is_meant_to(served: LiveResult) -> None:
    """Stop strings cut something off, streams were really left, only the shorter prompts were padded."""
    for row in rows(served, OWN, "stop string", OUT):
        assert (row.computed, row.reported) == (LENGTH, row.recounted)
        assert row.difference == -row.withheld[WithheldReason.STOP_TRIMMED] < 0
    for row in rows(served, OWN, "stream without usage", OUT):
        assert (row.computed, row.reported, row.recounted) == (LENGTH, None, LENGTH)
    for row in rows(served, OWN, "aborted stream", OUT):
        assert row.reported is None
        assert row.recounted is not None
        assert row.computed is not None
        assert 0 < row.recounted <= row.computed < 400
    padded = [row.difference for row in rows(served, OWN, "padded batch", IN)]
    assert sorted(bool(difference) for difference in padded) == [False, True, True]
    for row in rows(served, OWN, "padded batch", IN):
        assert row.computed == row.recounted


@pytest.mark.system
@one_run
def test_choices_are_children_of_one_attempt(served: LiveResult) -> None:
    """The prompt is counted once, the output of all choices together."""
    children = served.home.lake().scan("child").collect()
    for row in rows(served, OWN, "several choices", OUT):
        key = AttemptKey.from_hex(row.attempt)
        mine = children.filter(pl.col("attempt_hi") == key.hi, pl.col("attempt_lo") == key.lo)
        assert sorted(mine["child"]) == list(range(1, CHOICES + 1))
        assert set(mine["kind"]) == {"choice"}
        assert row.computed == row.reported == row.recounted == mine["output_computed"].sum() == CHOICES * LENGTH


@pytest.mark.system
@one_run
def test_a_retry_is_a_second_attempt_of_one_request(served: LiveResult) -> None:
    client, engine = attempts(served, "demo-client"), attempts(served, "demo-engine")
    again = {client[row.attempt]["request_lo"]: row.attempt for row in rows(served, OWN, "retry", OUT)}
    for kind, status, http in (("refused", "rejected", 429), ("failed", "failed", 500)):
        (row,) = rows(served, OWN, kind, OUT)
        first, second = client[row.attempt], client[again[client[row.attempt]["request_lo"]]]
        assert (first["status"], first["http_status"], first["attempt_number"]) == (status, http, 1)
        assert (second["status"], second["http_status"], second["attempt_number"]) == ("succeeded", 200, 2)
        assert first["request_hi"] == second["request_hi"]
        assert row.attempt not in engine


@pytest.mark.system
@one_run
def test_all_sides_name_one_tokenizer_and_one_template(served: LiveResult) -> None:
    found = served.home.lake().scan("attempt").filter(pl.col("tokenizer").is_not_null()).collect()
    sides = {"demo-client", "demo-engine"} | ({"serve-engine"} if served.serve else set())
    assert set(found["source"]) == sides
    assert found["tokenizer"].n_unique() == found["template"].n_unique() == 1
    recounted = served.home.lake().scan("attempt").filter(pl.col("input_recounted").is_not_null()).collect()
    assert set(recounted["source"]) == {"demo-client"}
    assert recounted["recount_has_template"].all()
    assert (recounted["recount_template"] > 0).all()


@pytest.mark.system
@one_run
def test_the_table_adds_up(served: LiveResult) -> None:
    table = {(row["server"], row["kind"], row["direction"]): row for row in as_frame(served.weighed).to_dicts()}
    assert len(table) == 2 * len({(row.server, row.kind) for row in served.weighed})
    assert sum(row["attempts"] for row in table.values()) == len(served.weighed)
    row = table[OWN, "several choices", "output"]
    assert (row["attempts"], row["computed"], row["residual"]) == (3, 3 * CHOICES * LENGTH, 0)
    assert table[OWN, "refused", "output"]["computed"] is None
    assert table[OWN, "stop string", "output"]["causes"] == table[OWN, "stop string", "output"]["withheld"]


@pytest.mark.system
@one_run
def test_what_is_found_is_what_was_put_in(served: LiveResult) -> None:
    found = served.home.lake().scan("finding").collect()
    causes = {cause for pair in EXPECTED.values() for cause in pair if cause is not None}
    # The calls that carry no id name no tenant either, and nobody sells this model.
    assert set(found["code"]) == causes | {"price_unknown", "unassigned_tenant"}
    assert set(found["severity"]) == {"info", "notice", "warning"}


@pytest.mark.system
@one_run
def test_no_text_of_the_calls_is_anywhere(served: LiveResult) -> None:
    words = [question.encode() for question in QUESTIONS] + [b"demo-tenant", b" lorry"]  # a word of every other answer
    files = [path for path in served.home.root.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files for word in words if word in path.read_bytes()]


@pytest.mark.slow
def test_without_transformers_serve_the_small_server_does_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing_packages():
        pytest.skip("not installed")
    monkeypatch.setattr(live_servers, "SERVE_NEEDED", ("no_such_package",))
    alone = live(tmp_path / "home")
    assert (alone.serve, alone.left_out) == (None, "no_such_package not installed")
    holds_for_all(alone, {pair for pair in EXPECTED if pair[0] == OWN})


def row(**told: Any) -> Weighed:
    """A stop string that was cut off: nine tokens computed, seven reported and found again."""
    made = Weighed(
        server=OWN, kind="stop string", attempt="0" * 32, direction=OUT, computed=9, reported=7, recounted=7,
        difference=-2, causes=("stop_trimmed",), residual=0, withheld={WithheldReason.STOP_TRIMMED: 2},
    )  # fmt: skip
    return dataclasses.replace(made, **told)


def test_another_cause_or_a_missing_one_is_not_as_expected() -> None:
    assert row().explained
    assert not row(causes=()).explained
    assert not row(causes=("end_token_convention", "stop_trimmed")).explained
    assert not row(residual=1).explained
    assert not row(difference=0).explained
    assert row(kind="plain", causes=(), difference=0).explained
    assert not row(kind="plain", causes=(), difference=None).explained  # the sides did not meet
    assert row(kind="padded batch", direction=IN, causes=(), difference=0).explained
    nothing = {"computed": None, "reported": None, "difference": None, "residual": None, "causes": ()}
    assert row(kind="refused", **nothing).explained
    assert not row(kind="refused", **nothing | {"computed": 9}).explained


def test_a_recount_has_to_be_what_was_delivered() -> None:
    assert row().recount_explained
    assert not row(recounted=8).recount_explained
    assert not row(withheld={}).recount_explained
    assert row(recounted=None).recount_explained
    assert row(recounted=3, withheld={}, aborted=True).recount_explained
    assert not row(recounted=8, aborted=True).recount_explained


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    if missing_packages():
        pytest.skip("not installed")
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ConfigError, match="not empty"):
        live(tmp_path)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        live_servers._started("demo_serve", tmp_path / "serve", tmp_path / "no.key") as process,
        pytest.raises(LiveError, match="did not start: FileNotFoundError"),
    ):
        process.listening()
    assert process.process.returncode is not None


def test_a_server_is_ended_by_the_end_of_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_servers, "_command", lambda *_: ["sh", "-c", "echo '{\"port\": 1}'; exec sleep 60"])
    with live_servers._started("demo_serve", tmp_path / "serve", tmp_path / "no.key") as process:
        assert process.listening() == {"port": 1}
        assert process.process.poll() is None
    assert process.process.returncode == -15
