"""Published words never change: everything of the first version is still there, with the meaning it had.

`frozen_v1.json` lists the enumerations and columns of schema version 1 and is itself held by a digest. A later
version may add members, nullable columns and tables, raises SCHEMA_VERSION, and gets a file of its own beside it,
which lists only what it added.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from weighbridge.schemas.enumerations import ENUMERATIONS
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION, check_version

FILE = Path(__file__).with_name("frozen_v1.json")
FROZEN = json.loads(FILE.read_text(encoding="utf-8"))
DIGEST = "8086deb9d1b0b8e76a2447b8c598a1e1c98d39f89b51e984f838459d91d9d233"
# Version -> digest of the file that lists what it added: tables, and columns of older ones.
LATER = {
    2: "a42c47c7ed41077ba5410cb126a8e716e908c403828eeeecdbdc629d25debc06",
    3: "edb4dbe9207ca29a5dcf129cec797544a19132a933ec734d23ceea2a817b456f",
    4: "ba19bf9a71ec677a87b25ea7d603c0ee7dbe65253b82490d36233ccfdb6c2965",
    5: "99040f4a4787fde9bcf48a8d0a7ebcee5c2ec332ec2549975223f8fbd7faf1f3",
}
ADDED = {v: json.loads(FILE.with_name(f"frozen_v{v}.json").read_text(encoding="utf-8")) for v in LATER}


def facts(column: Column) -> str:
    """All of a column that a reader or writer depends on; its sentence of documentation may be bettered."""
    parts = [
        str(column.type),
        "nullable" if column.nullable else "required",
        column.values.__name__ if column.values else "",
        "" if column.minimum is None else str(column.minimum),
        column.pattern or "",
        "personal" if column.personal else "",
    ]
    return "|".join(parts)


def test_the_frozen_file_itself_is_frozen() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == DIGEST


@pytest.mark.parametrize("version", LATER)
def test_what_a_later_version_added_is_frozen_as_well(version: int) -> None:
    raw = FILE.with_name(f"frozen_v{version}.json").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == LATER[version]
    for name, frozen in ADDED[version]["tables"].items():
        table = TABLES[name]
        assert table.since == version
        assert (str(table.domain), list(table.key), table.daily) == (frozen["domain"], frozen["key"], frozen["daily"])
        now = {column.name: facts(column) for column in table.columns}
        assert {column: now.get(column) for column in frozen["columns"]} == frozen["columns"]
    for name, columns in ADDED[version].get("columns", {}).items():
        now = {column.name: facts(column) for column in TABLES[name].columns}
        assert {column: now.get(column) for column in columns} == columns
    for name, members in ADDED[version].get("enumerations", {}).items():
        assert [str(member) for member in ENUMERATIONS[name]][: len(members)] == members


@pytest.mark.parametrize("name", FROZEN["enumerations"])
def test_members_keep_their_place_and_their_spelling(name: str) -> None:
    first = FROZEN["enumerations"][name]
    assert [str(member) for member in ENUMERATIONS[name]][: len(first)] == first


@pytest.mark.parametrize("name", FROZEN["tables"])
def test_columns_keep_their_type_and_meaning(name: str) -> None:
    frozen = FROZEN["tables"][name]
    table = TABLES[name]
    assert (str(table.domain), list(table.key), table.daily) == (frozen["domain"], frozen["key"], frozen["daily"])
    now = {column.name: facts(column) for column in table.columns}
    assert {column: now.get(column) for column in frozen["columns"]} == frozen["columns"]


def test_what_was_added_later_is_nullable() -> None:
    for name, frozen in FROZEN["tables"].items():
        for column in TABLES[name].columns:
            assert column.nullable or column.name in frozen["columns"], f"{name}.{column.name}"


def test_nothing_is_added_without_raising_the_version() -> None:
    known = FROZEN["tables"].keys() | {name for added in ADDED.values() for name in added["tables"]}
    added = [name for name in TABLES if name not in known]
    frozen = {name: set(table["columns"]) for name, table in FROZEN["tables"].items()}
    for later in ADDED.values():
        for name, columns in later.get("columns", {}).items():
            frozen[name] |= set(columns)
    added += [f"{n}.{c.name}" for n, columns in frozen.items() for c in TABLES[n].columns if c.name not in columns]
    words = FROZEN["enumerations"] | {
        n: m for later in ADDED.values() for n, m in later.get("enumerations", {}).items()
    }
    added += [name for name in ENUMERATIONS if name not in words]
    added += [f"{n}.{m}" for n, members in words.items() for m in ENUMERATIONS[n] if m not in members]
    assert not added, f"{added}: raise SCHEMA_VERSION and freeze them in a file of their own"
    assert max(LATER) == SCHEMA_VERSION


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_every_version_up_to_our_own_is_read(version: int) -> None:
    assert check_version(version, "x") == version


@pytest.mark.parametrize("found", [None, 0, -1, True, "1", 1.0, [1]])
def test_what_is_no_version_says_what_is(found: object) -> None:
    with pytest.raises(ContractError, match=r"a whole number from 1 to 5 is allowed.*import it with a mapping file"):
        check_version(found, "some file")


def test_a_later_version_is_refused() -> None:
    with pytest.raises(ContractError, match="Upgrade weighbridge on this host, then ingest the file again"):
        check_version(SCHEMA_VERSION + 1, "some file")
