"""Who changed what is configured: exactly what became another is written down, with the values before and after."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from weighbridge.pipeline.run.changes import known, notice, user
from weighbridge.pipeline.run.home import Home, init_home, open_home
from weighbridge.pipeline.run.night import Intake, night
from weighbridge.pipeline.settings import FILE
from weighbridge.schemas.errors import ConfigError

NOW = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
DAY = date(2026, 3, 1)
PRICES = """
format = 1
provider = "openai"
currency = "USD"
source = "https://example.com/prices"
checked_on = 2026-02-01
[[rows]]
models = ["m-1", "m-2"]
valid_from = 2026-01-01
prices = {{input = "{one}", output = "8"}}
[[rows]]
match = "prefix"
models = ["m-3"]
prices = {{input = "0.5"}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An installation with a price file of its own."""
    (tmp_path / "own.toml").write_text(PRICES.format(one="2"))
    return init_home(tmp_path / "home", key=bytes(range(32)), given={"prices": ["../own.toml"]}, env={})


def again(home: Home, more: str = "") -> Home:
    """The same with more in its settings."""
    path = home.root / FILE
    path.write_text(path.read_text() + more)
    return open_home(home.root, env={})


def told(home: Home, first: int = 0) -> list[tuple[object, ...]]:
    names = ["by", "kind", "file", "key", "before", "after"]
    rows = home.lake().scan("change").sort("number").collect()
    return [row for row in rows.select(names).rows()[first:] if not str(row[2]).startswith("built-in/")]


def test_a_price_that_changed_between_two_nights_is_two_rows(home: Home, tmp_path: Path) -> None:
    """The row names two models, so two values changed; the third row, and everything else, did not."""
    night(home, [home.spool], Intake(day=DAY), today=DAY)
    seen = home.lake().rows("change")
    (tmp_path / "own.toml").write_text(PRICES.format(one="2.5"))
    later = date(2026, 3, 2)
    night(home, [home.spool], Intake(day=later), today=later)
    night(home, [home.spool], Intake(day=later), today=later)
    kept = '"checked_on": "2026-02-01", "currency": "USD", "prices": {"input": "%s", "output": "8"}, '
    kept = "{" + kept + '"source": "https://example.com/prices"}'
    place = f"{tmp_path.name}/own.toml"
    assert told(home, seen) == [
        (user(), "prices", place, f"openai equals m-{n} from 2026-01-01", kept % "2", kept % "2.5") for n in (1, 2)
    ]
    at = home.lake().scan("change").sort("number").collect()["at"].to_list()
    assert (at[0], at[-1]) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


def test_what_is_seen_first_has_no_value_before(home: Home, tmp_path: Path) -> None:
    notice(home, NOW, by="ann")
    found = told(home)
    place = f"{tmp_path.name}/own.toml"
    assert [row[:5] for row in found if row[1] == "prices"] == [
        ("ann", "prices", place, "format", None),
        ("ann", "prices", place, "openai equals m-1 from 2026-01-01", None),
        ("ann", "prices", place, "openai equals m-2 from 2026-01-01", None),
        ("ann", "prices", place, "openai prefix m-3", None),
        ("ann", "prices", place, "provider", None),
    ]
    assert ("ann", "settings", FILE, "prices", None, '["../own.toml"]') in found
    assert notice(home, NOW) == 0


def test_a_row_that_was_moved_in_its_file_is_the_same(home: Home, tmp_path: Path) -> None:
    notice(home, NOW)
    head, first, second = PRICES.format(one="2").split("[[rows]]")
    (tmp_path / "own.toml").write_text(f"{head}[[rows]]{second}[[rows]]{first}")
    assert notice(home, NOW) == 0


def test_a_policy_that_is_set_changed_and_taken_out(home: Home) -> None:
    """Materiality from nothing to 1.00, to 2.00, to nothing."""
    notice(home, NOW)
    seen = home.lake().rows("change")
    before = (home.root / FILE).read_text()
    home = again(home, '\n[material]\namount = "1.00"\n')
    notice(home, NOW, by="ann")
    (home.root / FILE).write_text(before)
    home = again(home, '\n[material]\namount = "2.00"\n')
    notice(home, NOW, by="bob")
    (home.root / FILE).write_text(before)
    notice(again(home), NOW, by="cyd")
    assert told(home, seen) == [
        ("ann", "settings", FILE, "material.amount", None, "1.00"),
        ("bob", "settings", FILE, "material.amount", "1.00", "2.00"),
        ("cyd", "settings", FILE, "material.amount", "2.00", None),
    ]


def test_a_price_file_that_is_named_no_longer_has_no_values_any_more(home: Home) -> None:
    notice(home, NOW)
    seen = home.lake().rows("change")
    path = home.root / FILE
    path.write_text(path.read_text().replace('["../own.toml"]', "[]"))
    notice(open_home(home.root, env={}), NOW)
    gone = [row for row in told(home, seen) if row[1] == "prices"]
    assert len(gone) == 5
    assert {row[5] for row in gone} == {None}
    digests = home.lake().scan("change").sort("number").collect()["file_digest"].to_list()[seen:]
    assert digests.count(None) == 5


def test_a_mapping_that_another_run_does_not_name_stays(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "columns.toml"
    path.write_text('[columns]\n"usage.prompt_tokens" = "in"\n')
    place = f"{tmp_path.name}/columns.toml"
    notice(home, NOW, mappings=[path])
    seen = home.lake().rows("change")
    assert notice(home, NOW) == 0
    path.write_text('[columns]\n"usage.prompt_tokens" = "tokens_in"\n')
    notice(home, NOW, by="ann", mappings=[path])
    assert told(home, seen) == [("ann", "mapping", place, "columns.usage.prompt_tokens", "in", "tokens_in")]


def test_a_secret_is_never_written_down_and_its_change_is(home: Home) -> None:
    notice(home, NOW)
    seen = home.lake().rows("change")
    home = again(home, '\n[alerts]\nwebhook = "https://hooks.example/a-secret"\n')
    notice(home, NOW)
    path = home.root / FILE
    path.write_text(path.read_text().replace("a-secret", "b-secret"))
    notice(open_home(home.root, env={}), NOW)
    one, two = told(home, seen)
    assert (one[3], one[4], two[3]) == ("alerts.webhook", None, "alerts.webhook")
    assert str(one[5]).startswith("keyed:")
    assert (two[4], two[5] != one[5]) == (one[5], True)
    assert "-secret" not in str(home.lake().scan("change").collect().rows())


def test_a_long_value_stands_as_its_digest(home: Home) -> None:
    notice(home, NOW)
    home = again(home, f"\n[close]\naccepts = {[f'code_{n:03d}' for n in range(60)]}\n".replace("'", '"'))
    notice(home, NOW)
    value = known(home.lake())["settings", FILE, "close.accepts"]
    assert value.startswith("sha256:")
    assert len(value) == 71


def test_what_the_environment_sets_is_told_too(home: Home) -> None:
    notice(home, NOW)
    seen = home.lake().rows("change")
    notice(open_home(home.root, env={"WEIGHBRIDGE_CLOSE": '{"grace_days": 9}'}), NOW)
    (row,) = told(home, seen)
    assert row[1:5] == ("settings", "environment", "close", None)
    assert '"grace_days": 9' in str(row[5])


def test_a_file_that_is_no_toml_is_left_to_whoever_reads_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("no = toml = at all")
    assert notice(home, NOW) > 0
    assert [row for row in told(home) if row[1] == "prices"] == []
    (home.root / FILE).write_text("also none =")
    with pytest.raises(ConfigError):
        open_home(home.root, env={})
