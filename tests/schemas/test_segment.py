"""Sealed segments: there whole or not at all, and never read when a single byte differs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from tests.sampling import some

from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import (
    MANIFEST,
    conform,
    read_manifest,
    read_table,
    sha256_file,
    verify_segment,
    write_segment,
)
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION


def gaps(*attempts: int) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([20_000] * len(attempts), pa.date32()),
            "source": ["agent"] * len(attempts),
            "reason": ["quota"] * len(attempts),
            "attempts": pa.array(attempts, pa.int64()),
        }
    )


def sealed(folder: Path, name: str = "one") -> Path:
    return write_segment(
        folder,
        name,
        {"gap": gaps(3, 4)},
        writer="agent-a",
        sequence=(5, 9),
        labels={"simulated": "true"},
        key_id="ab12",
    )


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    assert path == tmp_path / "one.segment"
    manifest, digest = verify_segment(path)
    assert (manifest.writer, manifest.end, manifest.key_id) == ("agent-a", Ended.COMPLETE, "ab12")
    assert (manifest.sequence_first, manifest.sequence_last) == (5, 9)
    assert manifest.labels == {"simulated": "true"}
    assert manifest.schema_version == SCHEMA_VERSION
    assert manifest.files["gap"][0] == 2
    assert digest == hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    data = read_table(path, "gap")
    assert data.schema == TABLES["gap"].schema()
    assert data.column("attempts").to_pylist() == [3, 4]
    assert data.column("tokens").to_pylist() == [None, None]


def test_the_manifest_names_the_digest_of_each_file(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    told = json.loads((path / MANIFEST).read_text())
    raw = (path / "gap.parquet").read_bytes()
    assert told["format"] == "weighbridge segment"
    assert told["files"] == [{"table": "gap", "rows": 2, "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = sealed(tmp_path / "a"), sealed(tmp_path / "b")
    assert verify_segment(one)[1] == verify_segment(two)[1]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(sealed(tmp_path).stat().st_mode) == 0o700


def test_a_segment_is_never_overwritten(tmp_path: Path) -> None:
    before = verify_segment(sealed(tmp_path))
    with pytest.raises(FileExistsError, match="never overwritten, choose another name"):
        sealed(tmp_path)
    assert verify_segment(tmp_path / "one.segment") == before


def test_nothing_is_left_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="no space left"):
        sealed(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["gap.parquet", MANIFEST])
def test_a_single_flipped_bit_is_found(tmp_path: Path, file: str) -> None:
    path = sealed(tmp_path)
    whole = (path / file).read_bytes()
    digest = verify_segment(path)[1]
    for at in range(0, len(whole), 97):
        (path / file).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = None
        with contextlib.suppress(ContractError):
            found = verify_segment(path)[1]
        assert found != digest
    (path / file).write_bytes(whole)
    assert verify_segment(path)[1] == digest


def test_a_cut_file_a_missing_file_and_a_strange_file_are_named(tmp_path: Path) -> None:
    cut, missing, strange = sealed(tmp_path, "cut"), sealed(tmp_path, "missing"), sealed(tmp_path, "strange")
    raw = (cut / "gap.parquet").read_bytes()
    (cut / "gap.parquet").write_bytes(raw[:-1])
    with pytest.raises(ContractError, match=r"gap\.parquet differs from its manifest; nothing was read"):
        verify_segment(cut)
    (missing / "gap.parquet").unlink()
    with pytest.raises(ContractError, match=r"names gap\.parquet, the folder holds none;"):
        verify_segment(missing)
    (strange / "child.parquet").write_bytes(raw)
    with pytest.raises(ContractError, match=r"the folder holds child\.parquet, gap\.parquet;"):
        verify_segment(strange)


def test_a_folder_that_was_never_sealed(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"has no manifest\.json: it was never sealed"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format": "other"}',
        b'{"format": "weighbridge segment", "schema_version": 1}',
        b'{"format": "weighbridge segment", "schema_version": 1, "files": 3}',
        b'{"format": "weighbridge segment", "schema_version": 1, "files": [], "writer": "a", "end": "never"}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_manifest_that_is_none_says_so(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(raw)
    with pytest.raises(ContractError, match="is not a segment manifest"):
        read_manifest(tmp_path)


CANARY = "a canary sings"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("writer", None),
        ("writer", CANARY),
        ("end", CANARY),
        ("end", ["complete"]),
        ("sequence_first", 2**70),
        ("sequence_first", -1),
        ("sequence_last", CANARY),
        ("sequence_last", True),
        ("key_id", 7),
        ("labels", CANARY),
        ("labels", {"note": 7}),
        ("files", {"gap": CANARY}),
        ("files[0]", CANARY),
        ("files[0].table", CANARY),
        ("files[0].table", ["gap"]),
        ("files[0].rows", "2"),
        ("files[0].rows", 2.0),
        ("files[0].rows", True),
        ("files[0].bytes", -1),
        ("files[0].sha256", CANARY),
        ("schema_version", CANARY),
    ],
)
def test_a_field_of_a_manifest_that_is_not_what_it_has_to_be_is_named_without_its_value(
    tmp_path: Path, field: str, value: object
) -> None:
    path = sealed(tmp_path)
    told = json.loads((path / MANIFEST).read_text())
    place, _, inner = field.partition(".")
    if inner:
        told["files"][0][inner] = value
    elif place == "files[0]":
        told["files"][0] = value
    else:
        told[place] = value
    (path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(ContractError) as caught:
        verify_segment(path)
    assert field in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_manifest_that_names_a_table_twice_or_another_number_of_rows_is_not_believed(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    told = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(told | {"files": told["files"] * 2}))
    with pytest.raises(ContractError, match="names the table gap once more"):
        verify_segment(path)
    told["files"][0]["rows"] = 3
    (path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(ContractError, match="its digest is not that of its fields"):
        verify_segment(path)
    del told["digest"]
    (path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(ContractError, match=r"gap\.parquet has 2 rows, its manifest says 3; nothing was read"):
        verify_segment(path)


def test_a_file_of_any_name_is_counted_and_its_name_not_repeated_where_it_may_be_text(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    (path / CANARY).write_bytes(b"")
    with pytest.raises(ContractError, match=r"holds gap\.parquet and 1 of names that are not repeated here;"):
        verify_segment(path)


def test_a_later_schema_version_is_refused_with_the_advice_to_upgrade(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    told = json.loads((path / MANIFEST).read_text()) | {"schema_version": SCHEMA_VERSION + 1}
    (path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(
        ContractError, match=f"is {SCHEMA_VERSION + 1}, this installation reads up to {SCHEMA_VERSION}. Upgrade"
    ):
        verify_segment(path)


def test_a_manifest_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    told = json.loads((path / MANIFEST).read_text())
    told["files"][0]["table"] = "../one.segment/gap"
    (path / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(ContractError, match="nothing was read"):
        verify_segment(path)


def test_conform_orders_fills_and_casts() -> None:
    data = gaps(1).select(["attempts", "reason", "source", "day"])
    data = data.set_column(0, "attempts", data.column("attempts").cast(pa.int16()))
    shaped = conform("gap", data)
    assert shaped.schema == TABLES["gap"].schema()
    assert shaped.column("segment").null_count == 1


@pytest.mark.parametrize(
    ("table", "data", "message"),
    [
        ("gaps", gaps(1), "there is no table 'gaps'; known are request_scope, attempt"),
        ("gap", gaps(1).append_column("prompt", pa.array(["x"])), "unknown columns prompt; leave them out or rename"),
        ("gap", gaps(1).drop_columns(["source"]), r"gap\.source must not be null; 1 of 1 rows are"),
        (
            "gap",
            gaps(1).set_column(3, "attempts", pa.array(["many"])),
            r"gap\.attempts: a value of type string does not fit int64",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(table: str, data: pa.Table, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        conform(table, data)


def test_a_misfit_is_named_without_its_value() -> None:
    """The message of the Arrow cast quotes the value it could not parse; ours must not."""
    with pytest.raises(ContractError) as caught:
        conform("gap", gaps(1).set_column(3, "attempts", pa.array(["zebra " * 2])))
    assert "zebra zebra" not in "".join(traceback.format_exception(caught.value))


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_every_bit_of_a_manifest_is_held_by_its_digest(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    raw = (path / MANIFEST).read_bytes()
    for place in some(range(8 * len(raw)), 300):
        damaged = bytearray(raw)
        damaged[place // 8] ^= 1 << place % 8
        (path / MANIFEST).write_bytes(damaged)
        with pytest.raises(ContractError):
            read_manifest(path)
    for length in some(range(len(raw)), 60):
        (path / MANIFEST).write_bytes(raw[:length])
        with pytest.raises(ContractError):
            read_manifest(path)
