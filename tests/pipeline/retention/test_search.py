"""The search finds an id in every form, in plain and in compressed files, and nothing that is not there."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import uuid
import zipfile
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.retention.search import RAW_IDS, Found, Needles, search, within_file
from weighbridge.schemas.identity import AttemptKey, new_attempt_id

KEY = new_attempt_id(1_770_000_000_000)
TENANT = b"t_0123456789abcdef"
WORDS = {TENANT: "a tenant", b"short": "a word"}


def needles(*keys: AttemptKey) -> Needles:
    pairs = pl.DataFrame([tuple(key) for key in keys or (KEY,)], schema=["hi", "lo"], orient="row")
    return Needles(WORDS, {"an attempt": pairs})


FORMS = {
    "hexadecimal": KEY.to_hex().encode(),
    "upper case": KEY.to_hex().upper().encode(),
    "UUID": str(uuid.UUID(bytes=KEY.to_bytes())).encode(),
    "sixteen bytes": KEY.to_bytes(),
    "halves changed over": KEY.to_bytes()[8:] + KEY.to_bytes()[:8],
    "two little-endian words": struct.pack("<qq", *KEY),
    "second half, little-endian": struct.pack("<q", KEY.lo),
    "second half, big-endian": struct.pack(">q", KEY.lo),
    "decimal": f'"max":{KEY.lo},'.encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_id_is_found_in_every_form_and_at_every_place(form: str) -> None:
    rest = random.Random(form).randbytes(4096)
    for at in (0, 1, 2, 3, 4, 5, 6, 7, 8, 1001, 4090, 4096):
        assert needles().within(rest[:at] + FORMS[form] + rest[at:]) == {"an attempt"}, at
    assert needles().within(rest) == set()


@pytest.mark.parametrize("form", FORMS)
def test_one_byte_less_is_not_found(form: str) -> None:
    raw = FORMS[form].strip(b'"maxin:,')
    if form == "two little-endian words":
        raw = raw[8:]
    elif form == "halves changed over":
        raw = raw[1:]
    assert needles().within(b"xx" + raw[:-1] + b"xx") == set()


def test_texts_long_and_short_are_found_and_told_apart() -> None:
    assert needles().within(b"") == set()
    assert needles().within(b"a short one") == {"a word"}
    assert needles().within(b'{"tenant": "' + TENANT + b'"}') == {"a tenant"}
    assert needles().within(TENANT + KEY.to_bytes()) == {"a tenant", "an attempt"}
    assert needles().only("a tenant").within(TENANT + KEY.to_bytes()) == {"a tenant"}
    assert not Needles({}, {}).any
    assert Needles({}, {}).within(TENANT) == set()


def test_small_numbers_are_only_found_as_a_whole_id() -> None:
    small = AttemptKey(7, 12)
    held = needles(small)
    assert held.within(b"12 and 7, 12" + struct.pack("<q", 12)) == set()
    assert held.within(small.to_bytes()) == {"an attempt"}


def table(path: Path, **columns: object) -> Path:
    pl.DataFrame(columns).write_parquet(path, compression="zstd")
    return path


def test_columns_of_a_compressed_table_are_compared(tmp_path: Path) -> None:
    others = [new_attempt_id() for _ in range(5000)]
    keys = [*others[:100], KEY, *others[100:]]
    held = needles()
    for pair in ("attempt", "alias", "request"):
        path = table(tmp_path / f"{pair}.parquet",
                     **{f"{pair}_hi": [key.hi for key in keys], f"{pair}_lo": [key.lo for key in keys]})  # fmt: skip
        assert within_file(path, held) == {"an attempt"}
    swapped = table(tmp_path / "x.parquet", attempt_hi=[KEY.lo], attempt_lo=[KEY.hi])
    assert "an attempt" in within_file(swapped, held) or within_file(swapped, held) == set()
    free = table(
        tmp_path / "free.parquet", attempt_hi=[key.hi for key in others], attempt_lo=[key.lo for key in others]
    )
    assert within_file(free, held) == set()


def test_texts_bytes_and_lists_of_a_table_are_looked_through(tmp_path: Path) -> None:
    many = [f"row {number}" for number in range(10_000)]
    for name, values, found in (
        ("text", [*many, f"subject; tenant={TENANT.decode()}"], {"a tenant"}),
        ("bytes", [b"x", None, b"y" + KEY.to_bytes()], {"an attempt"}),
        ("list", [["a"], [KEY.to_hex(), "b"], None], {"an attempt"}),
        ("none", many, set()),
    ):
        assert within_file(table(tmp_path / f"{name}.parquet", column=values), needles()) == found, name


def test_a_checkpoint_of_a_table_log_is_looked_through(tmp_path: Path) -> None:
    stats = json.dumps({"minValues": {"attempt_lo": KEY.lo}})
    path = table(tmp_path / "1.checkpoint.parquet", add=[{"path": "x", "stats": "{}"}, {"path": "y", "stats": stats}])
    assert within_file(path, needles()) == {"an attempt"}


def test_workbooks_and_archives_are_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/sharedStrings.xml", b"<t>" + TENANT * 3 + b"</t>")
    with gzip.open(tmp_path / "old.log.gz", "wb") as log:
        log.write(b"attempt " + KEY.to_hex().encode())
    (tmp_path / "empty").touch()
    assert search([tmp_path], needles()) == [
        Found("a tenant", tmp_path / "book.xlsx"),
        Found("an attempt", tmp_path / "old.log.gz"),
    ]


def test_names_of_files_and_hidden_ones_count(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "left").write_bytes(b"!" + FORMS["UUID"])
    (tmp_path / f"{KEY.to_hex()}.json").write_text("{}")
    assert {found.path.name for found in search([tmp_path], needles())} == {"left", f"{KEY.to_hex()}.json"}
    assert search([tmp_path / "nowhere"], needles()) == []


def test_a_needle_across_the_edge_of_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighbridge.pipeline.retention.search._CHUNK", 4096)
    for at in range(4096 - 40, 4096 + 4):
        (tmp_path / "log").write_bytes(b"." * at + FORMS["hexadecimal"] + b"." * 5000)
        assert within_file(tmp_path / "log", needles()) == {"an attempt"}, at


def test_of_very_many_ids_some_are_looked_for_in_bytes_and_all_in_columns(tmp_path: Path) -> None:
    keys = [AttemptKey.from_bytes(os.urandom(16)) for _ in range(2 * RAW_IDS + 1)]
    held = needles(*keys)
    assert held.within(keys[0].to_hex().encode()) == {"an attempt"}
    assert held.within(keys[1].to_hex().encode()) == set()
    path = table(tmp_path / "rows.parquet", attempt_hi=[keys[1].hi], attempt_lo=[keys[1].lo])
    assert within_file(path, held) == {"an attempt"}


@pytest.mark.parametrize("name", ["x.parquet", "x.gz", "x.zip"])
def test_a_file_that_is_not_what_its_name_says_is_named_and_its_bytes_are_searched(tmp_path: Path, name: str) -> None:
    whole = {"x.parquet": b"PAR1", "x.gz": b"\x1f\x8b\x08", "x.zip": b"PK\x05\x06" + bytes(18)}[name]
    for number, content in enumerate((b"garbage " + TENANT, whole + TENANT)):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_bytes(content)
        unread: dict[Path, str] = {}
        assert search([path.parent], needles(), unread) == [Found("a tenant", path)]
        assert list(unread) == ([path] if name != "x.zip" else list(unread))


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(TENANT)

    def refused(*_given: object, **_named: object) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(Path, "open", refused)
    unread: dict[Path, str] = {}
    assert search([tmp_path], needles(), unread) == []
    assert unread == {path: "it cannot be read"}
