"""Scopes follow tasks, threads, pools and generators: a pipeline that splits and merges stays one request."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from weighbridge.capture import layout, reader, scope, seal
from weighbridge.capture.adapters import http_client
from weighbridge.capture.context import Context
from weighbridge.capture.dictionary import DictionaryFullError
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus, GapReason, Stage
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.segment import read_table

CONTEXT = Context(tenant="acme", task="support")
DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)


def rows(recorder: Recorder, tmp_path: Path, table: str = "request_scope") -> list[dict[str, Any]]:
    """Close, seal, and read one table; scopes in order of their number."""
    recorder.close()
    found: list[dict[str, Any]] = []
    for path in reader.journals(recorder.spool):
        segment = seal.seal(path, tmp_path / f"sealed-{table}")
        if (segment / f"{table}.parquet").exists():
            found += read_table(segment, table).to_pylist()
    return sorted(found, key=lambda row: int(row["scope"]))


def tree(found: list[dict[str, Any]]) -> list[tuple[str, str | None, str | None]]:
    """(stage, its name, the name or stage of its parent) of each scope, in order."""
    shown = {row["scope"]: row["name"] or row["stage"] for row in found}
    return [(row["stage"], row["name"], shown.get(row["parent_scope"])) for row in found]


def test_a_pipeline_that_splits_and_merges_is_one_request(recorder: Recorder, tmp_path: Path) -> None:
    """Three searches beside one another, one model call each, merged: every stage has its own tokens and times."""

    async def answer(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.01)
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        return httpx.Response(200, json={"id": "r", "usage": usage})

    async def branch(http: httpx.AsyncClient, number: int) -> int:
        with scope.stage(Stage.RETRIEVAL, f"search-{number}") as found:
            assert found is not None
            await asyncio.sleep(0.02 * (3 - number))
            found.tokens(input_tokens=number, output_tokens=number * 10)
            with scope.stage(Stage.MODEL_CALL):
                await http.post("http://api.openai.com/v1/chat/completions", json={"model": "m"})
        return number * 10

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            with http_client.install(http, recorder), scope.request(recorder, CONTEXT):
                with scope.stage(Stage.PRE_PROCESSING):
                    pass
                merged = sum(await asyncio.gather(*(branch(http, number) for number in range(3))))
                with scope.stage(Stage.CONTEXT_BUILDING, "merge") as merge:
                    assert merge is not None
                    merge.tokens(input_tokens=merged, output_tokens=12)
                assert scope.current.get() is not None
        assert scope.current.get() is None

    asyncio.run(main())
    found = rows(recorder, tmp_path)
    assert len({(row["request_hi"], row["request_lo"]) for row in found}) == 1
    assert sorted(tree(found), key=str) == sorted(
        [
            ("request", None, None),
            ("pre_processing", None, "request"),
            *(("retrieval", f"search-{number}", "request") for number in range(3)),
            *(("model_call", None, f"search-{number}") for number in range(3)),
            ("context_building", "merge", "request"),
        ],
        key=str,
    )
    named = {row["name"]: row for row in found if row["name"]}
    assert [(named[f"search-{n}"]["input_tokens"], named[f"search-{n}"]["output_tokens"]) for n in range(3)] == [
        (0, 0), (1, 10), (2, 20),
    ]  # fmt: skip
    assert (named["merge"]["input_tokens"], named["merge"]["output_tokens"]) == (30, 12)
    assert named["search-0"]["duration_us"] > named["search-2"]["duration_us"] >= 10_000
    whole = next(row for row in found if row["stage"] == "request")
    assert whole["duration_us"] >= max(row["duration_us"] for row in found)
    assert whole["tenant"].startswith("t_")
    calls = rows(recorder, tmp_path, "attempt")
    assert {(row["request_hi"], row["request_lo"]) for row in calls} == {(whole["request_hi"], whole["request_lo"])}
    stages = {row["scope"]: row["stage"] for row in found}
    assert [stages[row["scope"]] for row in calls] == ["model_call"] * 3


def test_threads_and_pools_get_the_scope_by_carry_and_none_without(recorder: Recorder, tmp_path: Path) -> None:
    binding = recorder.bind(CONTEXT)

    def work(name: str) -> None:
        with scope.stage(Stage.RETRIEVAL, name):
            binding.begin().finish(DONE)

    with scope.request(recorder, CONTEXT) as request, ThreadPoolExecutor(4) as pool:
        carried = scope.carry(work)
        list(pool.map(carried, [f"pool-{number}" for number in range(20)]))
        thread = threading.Thread(target=carried, args=("thread",))
        thread.start()
        thread.join()
        pool.submit(work, "stray").result()
        assert scope.current.get() is request
    found = rows(recorder, tmp_path)
    assert {row["name"] for row in found} == {None, "thread", *(f"pool-{number}" for number in range(20))}
    assert {row["parent_scope"] for row in found} == {None, 0}
    assert [row["scope"] for row in found] == list(range(22))
    calls = rows(recorder, tmp_path, "attempt")
    inside = [row for row in calls if row["request_hi"] is not None]
    assert (len(calls), len(inside)) == (22, 21)
    assert {(row["request_hi"], row["request_lo"]) for row in inside} == {request.key}
    assert sorted(row["scope"] for row in inside) == list(range(1, 22))


def test_to_thread_inherits_by_itself(recorder: Recorder, tmp_path: Path) -> None:
    @scope.staged(Stage.RETRIEVAL, "in_thread")
    def work() -> None:
        time.sleep(0.001)

    async def main() -> None:
        with scope.request(recorder, CONTEXT):
            await asyncio.to_thread(work)

    asyncio.run(main())
    assert tree(rows(recorder, tmp_path)) == [("request", None, None), ("retrieval", "in_thread", "request")]


def test_decorated_functions_are_stages_plain_and_async(recorder: Recorder, tmp_path: Path) -> None:
    @scope.staged(Stage.PRE_PROCESSING, "clean")
    def clean(text: str) -> str:
        return text.strip()

    @scope.staged(Stage.POST_PROCESSING, "render")
    async def render(text: str) -> str:
        await asyncio.sleep(0)
        return clean(text)

    async def main() -> None:
        with scope.request(recorder, CONTEXT):
            assert await render(" x ") == "x"
        assert await render(" y ") == "y"  # outside of any request: runs unrecorded

    asyncio.run(main())
    assert clean.__name__ == "clean"
    assert tree(rows(recorder, tmp_path)) == [
        ("request", None, None),
        ("post_processing", "render", "request"),
        ("pre_processing", "clean", "render"),
    ]


def test_an_exception_fails_its_stages_and_passes(recorder: Recorder, tmp_path: Path) -> None:
    def pipeline() -> None:
        with scope.request(recorder, CONTEXT):
            with scope.stage(Stage.PRE_PROCESSING, "fine"):
                pass
            with scope.stage(Stage.RETRIEVAL, "bad"):
                raise LookupError

    with pytest.raises(LookupError):
        pipeline()
    assert scope.current.get() is None
    found = rows(recorder, tmp_path)
    assert {row["name"]: row["status"] for row in found} == {None: "failed", "fine": "succeeded", "bad": "failed"}


def test_a_cancelled_task_aborts_its_own_stage_only(recorder: Recorder, tmp_path: Path) -> None:
    async def sleeper() -> None:
        with scope.stage(Stage.RETRIEVAL, "cancelled"):
            await asyncio.sleep(30)

    async def sibling() -> None:
        with scope.stage(Stage.RETRIEVAL, "sibling"):
            await asyncio.sleep(0.05)

    async def main() -> None:
        with scope.request(recorder, CONTEXT):
            slow = asyncio.create_task(sleeper())
            other = asyncio.create_task(sibling())
            await asyncio.sleep(0.01)
            slow.cancel()
            await asyncio.gather(slow, other, return_exceptions=True)
            with scope.stage(Stage.POST_PROCESSING, "after"):
                pass

    asyncio.run(main())
    found = rows(recorder, tmp_path)
    assert {row["name"]: row["status"] for row in found} == {
        None: "succeeded",
        "cancelled": "aborted",
        "sibling": "succeeded",
        "after": "succeeded",
    }
    assert {row["parent_scope"] for row in found} == {None, 0}


def test_an_async_generator_may_be_read_to_its_end_or_left(recorder: Recorder, tmp_path: Path) -> None:
    async def answer(name: str) -> AsyncIterator[int]:
        with scope.stage(Stage.MODEL_CALL, name):
            for number in range(3):
                yield number
                await asyncio.sleep(0)

    async def main() -> None:
        with scope.request(recorder, CONTEXT):
            assert [number async for number in answer("read")] == [0, 1, 2]
            left = answer("left")
            assert await anext(left) == 0
            await left.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    found = rows(recorder, tmp_path)
    assert {row["name"]: row["status"] for row in found} == {None: "succeeded", "read": "succeeded", "left": "aborted"}


def test_a_generator_closed_in_another_task_does_not_break_its_host(recorder: Recorder, tmp_path: Path) -> None:
    """An event loop closes abandoned generators in a context that never entered the scope."""

    async def answer() -> AsyncIterator[int]:
        with scope.stage(Stage.MODEL_CALL, "elsewhere"):
            yield 1
            yield 2

    async def main() -> None:
        with scope.request(recorder, CONTEXT):
            generator = answer()
            await anext(generator)
            await asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]

    asyncio.run(main())
    assert {row["name"]: row["status"] for row in rows(recorder, tmp_path)} == {
        None: "succeeded",
        "elsewhere": "aborted",
    }


def test_generators_that_are_read_in_turns_leave_the_request_as_they_found_it(
    recorder: Recorder, tmp_path: Path
) -> None:
    def answer(name: str) -> Iterator[int]:
        with scope.stage(Stage.MODEL_CALL, name):
            yield 1
            yield 2

    with scope.request(recorder, CONTEXT) as request:
        first, second = answer("first"), answer("second")
        assert [next(first), next(second), next(first), next(second)] == [1, 1, 2, 2]
        assert list(first) == []
        assert list(second) == []
        assert scope.current.get() is request
    assert scope.current.get() is None
    assert {row["status"] for row in rows(recorder, tmp_path)} == {"succeeded"}


def test_two_requests_at_once_do_not_mix(recorder: Recorder, tmp_path: Path) -> None:
    async def one(name: str) -> None:
        with scope.request(recorder, CONTEXT):
            await asyncio.sleep(0.001)
            with scope.stage(Stage.RETRIEVAL, name):
                await asyncio.sleep(0.001)

    async def main() -> None:
        await asyncio.gather(*(one(f"r{number}") for number in range(30)))

    asyncio.run(main())
    found = rows(recorder, tmp_path)
    assert len({(row["request_hi"], row["request_lo"]) for row in found}) == 30
    assert [row["scope"] for row in found] == [0] * 30 + [1] * 30


def test_a_name_that_could_be_text_is_refused(recorder: Recorder) -> None:
    with scope.request(recorder, CONTEXT), pytest.raises(ConfigError), scope.stage(Stage.OTHER, "What is my salary"):
        pass


def test_a_scope_keeps_its_words_however_many_contexts_are_bound_while_it_is_open(
    recorder: Recorder, tmp_path: Path
) -> None:
    """Files forget what nobody uses. A stage may begin long after its request was last asked for."""
    with scope.request(recorder, CONTEXT), scope.stage(Stage.RETRIEVAL, "slow"):
        for number in range(3_000):
            recorder.bind(Context(task=f"task-{number}")).begin().finish(DONE)
        for number in range(9_000):
            recorder.bind(Context(task=f"task-{number % 7}")).begin().finish(DONE)
        with scope.stage(Stage.MODEL_CALL, "late"):
            pass
    recorder.close()
    files = [reader.read_journal(path) for path in reader.journals(recorder.spool)]
    assert len(files) > 1
    assert [contents.damaged for contents in files] == [0] * len(files)
    found = rows(recorder, tmp_path)
    assert tree(found) == [("request", None, None), ("retrieval", "slow", "request"), ("model_call", "late", "slow")]
    assert {(row["task"], row["tenant"][:2]) for row in found} == {("support", "t_")}


def test_a_scope_that_was_left_is_forgotten_with_its_words(recorder: Recorder) -> None:
    for number in range(50):
        with scope.request(recorder, Context(task=f"task-{number}")):
            pass
    assert recorder.dictionary.in_use() == set()


def test_a_request_without_room_for_its_words_still_runs(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise DictionaryFullError

    told: list[tuple[object, int]] = []
    monkeypatch.setattr(recorder.dictionary, "number", refuse)
    monkeypatch.setattr(recorder.losses, "count", lambda reason, attempts=1: told.append((reason, attempts)))
    with scope.request(recorder, CONTEXT), scope.stage(Stage.RETRIEVAL, "search"):
        ran = True
    assert ran
    assert told == [(GapReason.BUFFER_FULL, 0)] * 2
