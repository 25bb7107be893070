"""A word that stands in every text of the inputs is in nothing that any verb prints, logs or writes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.pipeline.ingest.test_ingest_canary import ANSWERS, CANARY, WORD, with_canaries

Run = Callable[..., Any]

MAPPING = """
[source]
name = "gateway"
provider = "openai"
[columns]
tenant = "team"
task = "job"
finish_reason = "why"
[leaves]
"usage.input_total" = "in"
"usage.output_total" = "out"
"""
TABLE = f"team,job,why,in,out,note\n{CANARY},{CANARY},{CANARY},5,6,{CANARY}\nred,chat,stop,{CANARY},6,{CANARY}\n"


def readable(path: Path) -> Iterator[bytes]:
    """What a file says: as it lies there, and unpacked where it is packed."""
    yield path.read_bytes()
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pydict()).encode()
    elif path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            yield from (book.read(name) for name in book.namelist())


def telling(folder: Path, word: str) -> set[str]:
    """The kinds of files below a folder that hold the word, in any case of letters."""
    return {
        path.suffix
        for path in folder.rglob("*")
        if path.is_file() and any(word.lower().encode() in said.lower() for said in readable(path))
    }


def test_no_verb_prints_logs_or_writes_a_text_of_its_inputs(weighbridge: Run, tmp_path: Path) -> None:
    home, given = tmp_path / "home", tmp_path / "given"
    weighbridge("init", home)
    given.mkdir()
    lines = [json.dumps(with_canaries(answer)) for answer in ANSWERS]
    lines += [CANARY, json.dumps({CANARY: CANARY}), json.dumps(with_canaries({"provider": "openai", "usage": CANARY}))]
    (given / "answers.jsonl").write_text("\n".join(lines) + "\n")
    (given / "calls.csv").write_text(TABLE)
    (given / "broken.csv").write_text(TABLE + f'"{CANARY}\n')
    (tmp_path / "mapping.toml").write_text(MAPPING)
    mapped = ("--mapping", tmp_path / "mapping.toml")
    at = ("--config", home, "--log-level", "debug")
    ran = [
        weighbridge("ingest", given / "answers.jsonl", "--day", "20260105", *at),
        weighbridge("ingest", given / "calls.csv", "--day", "20260105", *mapped, *at),
        weighbridge("ingest", given / "broken.csv", "--day", "20260105", *mapped, *at),
        weighbridge("read", given / "answers.jsonl", "--json", *at),
        weighbridge("reconcile", *at),
        weighbridge("findings", "ls", *at),
        weighbridge("report", *at),
        weighbridge("doctor", *at),
    ]
    assert [each.code for each in ran] == [1, 1, 2, 1, 1, 1, 0, 0]
    assert not [each for each in ran if WORD in (each.out + each.err).lower()]
    assert telling(home, WORD) == set()
    # The search itself finds what is meant to be kept, in each kind of file that was written.
    assert telling(home, "gpt-4o") >= {".parquet", ".xlsx", ".html", ".csv"}
