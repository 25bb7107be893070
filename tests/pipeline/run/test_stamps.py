"""Stamps: a unit is due while its mark is another than the one it was done for."""

from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.pipeline.run.stamps import Stamps


@pytest.fixture
def stamps(tmp_path: Path) -> Stamps:
    return Stamps(tmp_path / "state" / "stamps.json")


def test_what_was_never_done_is_due_and_what_was_done_is_not(stamps: Stamps) -> None:
    assert stamps.due("price", {"2026-01-02": "b", "2026-01-01": "a"}) == {"2026-01-01": "a", "2026-01-02": "b"}
    stamps.put("price", {"2026-01-01": "a"})
    assert stamps.due("price", {"2026-01-01": "a", "2026-01-02": "b"}) == {"2026-01-02": "b"}
    assert stamps.due("price", {"2026-01-01": "other"}) == {"2026-01-01": "other"}
    assert stamps.due("report", {"2026-01-01": "a"}) == {"2026-01-01": "a"}


def test_units_that_are_gone_are_forgotten(stamps: Stamps) -> None:
    stamps.put("price", {"2026-01-01": "a", "2026-01-02": "b"})
    stamps.put("price", {"2026-01-03": "c"}, gone=["2026-01-01", "1999-01-01"])
    assert stamps.of("price") == {"2026-01-02": "b", "2026-01-03": "c"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"format": "another", "steps": {}}',
        b'{"format": "weighbridge stamps 1", "steps": 3}',
        b'{"format": "weighbridge stamps 1", "steps": {"price": []}}',
        b'{"format": "weighbridge stamps 1"',
    ],
)
def test_a_file_that_cannot_be_read_makes_everything_due(stamps: Stamps, content: bytes) -> None:
    stamps.put("price", {"2026-01-01": "a"})
    stamps.path.write_bytes(content)
    assert stamps.due("price", {"2026-01-01": "a"}) == {"2026-01-01": "a"}
    stamps.put("price", {"2026-01-01": "a"})
    assert stamps.due("price", {"2026-01-01": "a"}) == {}
    assert [path.name for path in stamps.path.parent.iterdir()] == ["stamps.json"]
