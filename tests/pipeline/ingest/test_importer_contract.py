"""What holds for every importer, one that will be written next year included."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from tests.pipeline.ingest.bill_samples import bills
from tests.pipeline.ingest.engine_samples import finished, http_call, step
from tests.pipeline.ingest.gateway_samples import observation, request, run, spend
from tests.pipeline.ingest.log_samples import chat, completions, export, invocation, message, page, span
from tests.pipeline.ingest.test_importer_sglang_requests import request as sglang
from tests.pipeline.ingest.test_importer_tensorrt_llm_requests import request as tensorrt
from tests.sampling import some

from weighbridge.pipeline.ingest.importer import Importer, Source, Staged, importers
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.tables import TABLES

Take = Callable[..., IngestResult]
Row = Callable[..., dict[str, object]]
ALL = importers()
EVERY = pytest.mark.parametrize("importer", ALL.values(), ids=list(ALL))


@pytest.fixture
def samples(
    tmp_path: Path, jsonl: Callable[..., Path], segment: Callable[..., Path], answer: Row, attempt: Row, report: Row
) -> dict[str, Source]:
    """One good file per importer: each has two records, of which two are stored. A new importer adds its own here."""
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-01-15 10:30:00,1,2\n2026-01-15 10:30:01,3,4\n", encoding="utf-8"
    )
    metrics = tmp_path / "gpu-7_20260115T103000Z.prom"
    counters = ('vllm:prompt_tokens_total{model_name="m"} 3\n', 'vllm:generation_tokens_total{model_name="m"} 2\n')
    metrics.write_text("".join(counters), encoding="utf-8")
    table = tmp_path / "table.csv"
    table.write_text("in,out\n1,2\n3,4\n", encoding="utf-8")
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[source]\nname = "acme"\n[leaves]\n"usage.input_total" = "in"\n', encoding="utf-8")
    charges = tmp_path / "charges.toml"
    told = '[source]\nname = "reseller"\nprovider = "openai"\n[charges]\namount = "in"\nstart = "on"\nproject = "to"\n'
    charges.write_text(told, encoding="utf-8")
    paths = {
        **bills(tmp_path),
        "azure_trace": trace,
        "bedrock_invocations": jsonl("invocations.jsonl", [invocation(1), invocation(2)]),
        "claude_code": jsonl("session.jsonl", [message(1, 5), message(2, 6)]),
        "engine_metrics": metrics,
        "helicone": jsonl("helicone.jsonl", [request(1), request(2)]),
        "http_calls": jsonl("calls.jsonl", [http_call(1), http_call(2)]),
        "langfuse": jsonl("langfuse.jsonl", [observation(1), observation(2)]),
        "langsmith": jsonl("langsmith.jsonl", [run(1), run(2)]),
        "litellm": jsonl("litellm.jsonl", [spend(1), spend(2)]),
        "otel_spans": jsonl("spans.jsonl", [export(span(1, chat(1, 2)), span(2, chat(3, 4)))]),
        "usage_pages": jsonl("pages.jsonl", [page([completions(), completions(model="m")])]),
        "mapped": table,
        "recorded_answers": jsonl("answers.jsonl", [answer(1), answer(2)]),
        "token_logs": jsonl("tokens.jsonl", [{"output_token_ids": [1, n], "prompt_tokens": n} for n in (2, 3)]),
        "segment": segment("sealed", attempt=[attempt(1)], usage_report=[report(1)]),
        "sglang_requests": jsonl("sglang.jsonl", [sglang(1), sglang(2)]),
        "tensorrt_llm_requests": jsonl("tensorrt.jsonl", [tensorrt(1), tensorrt(2)]),
        "vllm_requests": jsonl("requests.jsonl", [finished(1), finished(2)]),
        "vllm_steps": jsonl("steps.jsonl", [step(1, busy=True), step(2)]),
    }
    key, day = bytes(range(32)), date(2026, 1, 15)
    mappings = {"mapped": mapping, "mapped_charges": charges}
    return {name: Source(path, key, day, mapping=mappings.get(name)) for name, path in paths.items()}


def staged(importer: Importer, source: Source) -> Staged:
    return importer.read(source, importer.check(source))


def test_the_folder_holds_the_importers_we_know() -> None:
    assert list(ALL) == [
        "aws_cur",
        "azure_costs",
        "azure_trace",
        "bedrock_invocations",
        "claude_code",
        "cost_pages",
        "currency_rates",
        "engine_metrics",
        "focus",
        "google_billing",
        "helicone",
        "http_calls",
        "langfuse",
        "langsmith",
        "litellm",
        "mapped",
        "mapped_charges",
        "otel_spans",
        "recorded_answers",
        "segment",
        "sglang_requests",
        "tensorrt_llm_requests",
        "token_logs",
        "usage_pages",
        "vllm_requests",
        "vllm_steps",
    ]


def test_every_importer_has_a_sample(samples: dict[str, Source]) -> None:
    assert set(samples) == set(ALL)


@EVERY
def test_it_is_named_like_its_module_and_says_what_it_reads(importer: Importer) -> None:
    assert ALL[importer.name] is importer
    assert NAME.fullmatch(importer.name)
    assert importer.doc.endswith(".")
    assert len(importer.doc) > 40


@EVERY
def test_a_file_is_recognised_by_its_own_importer_and_by_no_other(
    importer: Importer, samples: dict[str, Source]
) -> None:
    recognised = [name for name, source in samples.items() if importer.recognises(source.path)]
    assert recognised == ([] if importer.name in {"mapped", "mapped_charges"} else [importer.name])


@EVERY
def test_recognising_never_raises(importer: Importer, tmp_path: Path) -> None:
    odd = {
        "empty.jsonl": b"",
        "empty.csv": b"",
        "bytes.jsonl": b"\xff\xfe\x00" * 100,
        "bytes.csv": b"\xff\xfe\x00" * 100,
        "torn.jsonl.gz": b"\x1f\x8b\x08",
        "deep.jsonl": b"[" * 100_000,
        "scalar.jsonl": b"1\n2\n",
        "odd.parquet": b"PAR1",
        "none": b"",
    }
    for name, content in odd.items():
        (tmp_path / name).write_bytes(content)
        assert importer.recognises(tmp_path / name) is False
    assert importer.recognises(tmp_path) is False
    assert importer.recognises(tmp_path / "nowhere.jsonl") is False


@EVERY
def test_reading_gives_rows_of_the_vocabulary_and_counts_every_record(
    importer: Importer, samples: dict[str, Source]
) -> None:
    rows = staged(importer, samples[importer.name])
    assert (rows.records, rows.refused_records) == (2, 0)
    assert rows.rows == sum(frame.height for frame in rows.tables.values()) > 0
    for name, frame in rows.tables.items():
        types = polars_schema(name)
        assert set(frame.columns) - {"segment_row"} <= set(types)
        assert not frame.columns.count("segment")
        assert {n: frame.schema[n] for n in frame.columns if n in types and frame.schema[n] != types[n]} == {}


@EVERY
def test_keys_that_an_importer_made_itself_are_named_and_are_those_of_its_attempts(
    importer: Importer, samples: dict[str, Source]
) -> None:
    rows = staged(importer, samples[importer.name])
    if importer.recorded or "attempt" not in rows.tables:
        assert rows.derived is None
        return
    assert rows.derived is not None
    key = ["attempt_hi", "attempt_lo", "source"]
    assert rows.derived.select(key).unique().sort(key).equals(rows.tables["attempt"].select(key).unique().sort(key))


@EVERY
def test_reading_twice_gives_the_same(importer: Importer, samples: dict[str, Source]) -> None:
    source = samples[importer.name]
    once, twice = staged(importer, source), staged(importer, source)
    assert list(once.tables) == list(twice.tables)
    for name, frame in once.tables.items():
        assert frame.equals(twice.tables[name]), name


@EVERY
def test_another_key_gives_other_pseudonyms_and_other_derived_keys(
    importer: Importer, samples: dict[str, Source]
) -> None:
    source = samples[importer.name]
    other = Source(source.path, b"x" * 32, source.day, mapping=source.mapping)
    one, two = (_keys(staged(importer, s)) for s in (source, other))
    # Rates of currencies are nobody's.
    assert (one == two) is (importer.recorded or importer.name == "currency_rates")


_NAMED_BY = {
    "attempt": "attempt_lo",
    "usage_period": "cell_lo",
    "engine_counter": "cell_lo",
    "invoice_line": "line_id",
    "currency_rate": "rate_day",
}


def _keys(rows: Staged) -> list[object]:
    """Half the keys of attempts; of sums of a period, of their cells; the ids of lines of bills."""
    (table,) = _NAMED_BY.keys() & rows.tables.keys()
    return rows.tables[table][_NAMED_BY[table]].to_list()


@EVERY
def test_rows_in_are_rows_out_refused_and_duplicate(
    importer: Importer, samples: dict[str, Source], lake: Lake, take: Take
) -> None:
    source = samples[importer.name]
    (file,) = take([source.path], lake, mapping=source.mapping).files
    assert (file.importer, file.rows_in, file.rows_out) == (importer.name, 2, 2)
    assert take([source.path], lake, mapping=source.mapping).files[0].skipped
    for name in TABLES:
        frame = lake.scan(name).collect()
        assert dict(frame.schema) == polars_schema(name)


@EVERY
def test_a_file_that_changed_a_byte_anywhere_is_read_refused_or_named_and_never_breaks(
    importer: Importer, samples: dict[str, Source], tmp_path: Path, take: Take
) -> None:
    """Damage is data or a told error, whatever byte it hits; the account balances each time."""
    source = samples[importer.name]
    for place in some(range(0, 400, 37), 4):
        folder = tmp_path / f"damaged{place}"
        folder.mkdir()
        target = folder / source.path.name
        if source.path.is_dir():
            shutil.copytree(source.path, target)
            victim = sorted(target.iterdir())[place % len(list(target.iterdir()))]
        else:
            victim = Path(shutil.copy(source.path, target))
        data = bytearray(victim.read_bytes())
        data[place % len(data)] ^= 0xFF
        victim.write_bytes(data)
        problem = None
        try:
            files = take([target], Lake.create(folder / "lake"), mapping=source.mapping).files
        except WeighbridgeError as error:
            files, problem = (), str(error)
        assert problem is None or str(target) in problem
        for file in files:
            assert file.rows_in == file.rows_out + file.rows_quarantined + file.rows_duplicate
