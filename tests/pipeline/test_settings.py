"""Settings: one table, one file, the environment; a mistake is named together with what is right."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from weighbridge.pipeline.settings import DAYS, KNOBS, Settings, document, find_config, knobs, load
from weighbridge.pipeline.settings.shape import Line, Named, Shape
from weighbridge.schemas.errors import ConfigError


def config(folder: Path, text: str) -> Path:
    path = folder / "weighbridge.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_lie_beside_the_file(tmp_path: Path) -> None:
    found = load(config(tmp_path, ""), env={})
    assert (found.lake, found.key_file, found.reports) == (
        str(tmp_path / "lake"),
        tmp_path / "keys" / "pseudonym.key",
        tmp_path / "reports",
    )
    assert (found.prices, found.timezone, found.log_level, found.price_age_days) == ((), "UTC", "warning", 90)
    assert set(found.origins.values()) == {"default"}


def test_command_line_beats_environment_beats_file(tmp_path: Path) -> None:
    path = config(tmp_path, 'timezone = "Europe/Berlin"\nlog_level = "error"\nprice_age_days = 30\n')
    found = load(
        path, env={"WEIGHBRIDGE_LOG_LEVEL": "info", "WEIGHBRIDGE_TIMEZONE": "UTC"}, given={"log_level": "debug"}
    )
    assert (found.timezone, found.log_level, found.price_age_days) == ("UTC", "debug", 30)
    assert found.origins["timezone"] == "environment WEIGHBRIDGE_TIMEZONE"
    assert found.origins["log_level"] == "option --log-level"
    assert found.origins["price_age_days"] == str(path)
    assert found.origins["title"] == "default"


def test_an_option_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    assert load(config(tmp_path, 'title = "March"'), env={}, given={"title": None}).title == "March"


def test_relative_paths_are_beside_the_file_and_urls_stay(tmp_path: Path) -> None:
    path = config(tmp_path, 'lake = "s3://bucket/lake"\nprices = ["own/a.toml", "/etc/b.toml"]\n')
    found = load(path, env={})
    assert found.lake == "s3://bucket/lake"
    assert found.prices == (tmp_path / "own/a.toml", Path("/etc/b.toml"))


def test_the_environment_writes_lists_and_numbers_as_text(tmp_path: Path) -> None:
    env = {"WEIGHBRIDGE_PRICES": "/a.toml:/b.toml", "WEIGHBRIDGE_FREE_DISK_MIB": "5"}
    found = load(config(tmp_path, ""), env=env)
    assert (found.prices, found.free_disk_mib) == ((Path("/a.toml"), Path("/b.toml")), 5)


def test_a_place_or_program_that_was_left_empty_is_none(tmp_path: Path) -> None:
    found = load(config(tmp_path, ""), env={"WEIGHBRIDGE_CONTENT_KEYS": ""})
    assert (found.acks, found.content_keys, found.content_key_command, found.content_key_variable) == (
        None,
        None,
        (),
        "",
    )


def test_keys_of_token_ids_and_acknowledgements_are_named(tmp_path: Path) -> None:
    text = 'acks = "acks"\ncontent_key_command = ["/usr/bin/keys", "--of", "a b"]\nids_grace_days = 0\n'
    found = load(config(tmp_path, text), env={"WEIGHBRIDGE_CONTENT_KEYS": "/keys", "WEIGHBRIDGE_ROOT_KEY": "secret"})
    assert (found.acks, found.content_keys, found.ids_grace_days) == (tmp_path / "acks", Path("/keys"), 0)
    assert found.content_key_command == ("/usr/bin/keys", "--of", "a b")
    quoted = load(config(tmp_path, ""), env={"WEIGHBRIDGE_CONTENT_KEY_COMMAND": "/usr/bin/keys --of 'a b'"})
    assert quoted.content_key_command == found.content_key_command


@pytest.mark.parametrize(
    ("text", "env", "message"),
    [
        ("", {"WEIGHBRIDGE_CONTENT_KEY_COMMAND": "keys 'a"}, "allowed is a program and its arguments"),
        ("content_key_command = ['']", {}, "allowed is a program and its arguments"),
        ("content_key_command = 'keys'", {}, "content_key_command is text; a list of texts is expected"),
        ("content_key_variable = 'ROOT KEY'", {}, "allowed is the name of an environment variable"),
        ("laek = 1", {}, "unknown setting 'laek'; did you mean lake?"),
        ("[lake]\nroot = 1", {}, "lake is a table; text is expected"),
        ("", {"WEIGHBRIDGE_LOGLEVEL": "info"}, "did you mean WEIGHBRIDGE_LOG_LEVEL?"),
        ("price_age_days = '90'", {}, "price_age_days is text; a whole number is expected"),
        ("price_age_days = 1.5", {}, "price_age_days is a fraction; a whole number is expected"),
        ("price_age_days = true", {}, "price_age_days is true or false; a whole number is expected"),
        ("price_age_days = -1", {}, "price_age_days is -1; allowed is a whole number from 0 up"),
        ("", {"WEIGHBRIDGE_PRICE_AGE_DAYS": "soon"}, "'soon'; allowed is a whole number from 0 up"),
        ("timezone = 'Mars/Olympus'", {}, "'Mars/Olympus'; allowed is a time zone of the IANA database"),
        ("timezone = '../etc'", {}, "allowed is a time zone"),
        ("log_level = 'loud'", {}, "'loud'; allowed is debug, info, warning, error"),
        ("prices = [1]", {}, "allowed is a list of paths"),
        ("prices = 'a.toml'", {}, "prices is text; a list of texts is expected"),
        ("lake = ''", {}, "allowed is a folder or an object-store URL"),
        ("title = ' '", {}, "allowed is one line of text"),
        ("lake =", {}, "is not TOML"),
        ("retention = 5", {}, "retention is a whole number; a table is expected"),
        ("[close]\ngrace = 5", {}, "close.grace is unknown; did you mean grace_days?"),
        ("[close]\naccepts = ['Un explained']", {}, "close.accepts is ['Un explained']; allowed is a list of codes"),
        ("[close]\nmaterial = '-1'", {}, "close.material is '-1'; allowed is an amount in quotes"),
        ("[close]\nmaterial = 1", {}, "close.material is a whole number; text is expected"),
        ("[retention]\nid = 5", {}, "retention.id is unknown; did you mean ids? Known are reports, billing"),
        ("[retention]\nids = '5'", {}, "retention.ids is text; a whole number is expected: token ids"),
        ("[retention]\nids = true", {}, "retention.ids is true or false; a whole number is expected"),
        ("[retention]\nids = -1", {}, "retention.ids is -1; allowed is a number of days from 0 to 36500"),
        ("[retention]\nids = 36501", {}, "retention.ids is 36501; allowed is a number of days"),
        ("[retention.tasks]\nchat = 5", {}, "retention.tasks.chat is a whole number; a table is expected"),
        ("[retention.tasks.chat]\nspool = 5", {}, "retention.tasks.chat.spool is unknown; Known are billing"),
        ("[retention.tasks.chat]\nids = 1.5", {}, "retention.tasks.chat.ids is a fraction"),
        (
            "[retention.tenants.'Acme Ltd']\nids = 5",
            {},
            "retention.tenants has a table of which the name is not a tenant",
        ),
        ("[retention]\ntenants = 5", {}, "retention.tenants is a whole number; a table is expected for each"),
        ("", {"WEIGHBRIDGE_RETENTION": "ids = 5"}, "WEIGHBRIDGE_RETENTION is not JSON"),
        ("", {"WEIGHBRIDGE_RETENTION": "[5]"}, "WEIGHBRIDGE_RETENTION is a list; a JSON object is expected"),
        ("", {"WEIGHBRIDGE_RETENTION": '{"ids": 1.5}'}, "WEIGHBRIDGE_RETENTION.ids is a fraction"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, env: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(config(tmp_path, text), env=env)
    assert message in str(caught.value)


def test_a_strange_key_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Known are lake, key_file, prices, .*reports, title, timezone"):
        load(config(tmp_path, "zzz = 1"), env={})


def test_names_of_the_environment_that_are_no_knobs_pass(tmp_path: Path) -> None:
    env = {"WEIGHBRIDGE_CONFIG": "x", "WEIGHBRIDGE_REAL": "y", "WEIGHBRIDGE_SPARK_EXCHANGE": "/shared", "PATH": "z"}
    assert load(config(tmp_path, ""), env=env) == load(config(tmp_path, ""), env={})


def test_the_file_is_found_here_or_above(tmp_path: Path) -> None:
    path = config(tmp_path, "")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_config(None, {}, inner) == path
    assert find_config(tmp_path, {}, inner) == path
    assert find_config(None, {"WEIGHBRIDGE_CONFIG": str(path)}, Path("/")) == path


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="weighbridge init"):
        find_config(tmp_path / "none.toml", {})
    with pytest.raises(ConfigError, match="weighbridge init"):
        find_config(None, {}, tmp_path)
    with pytest.raises(ConfigError, match="weighbridge init"):
        load(tmp_path / "none.toml", env={})


def test_the_written_file_names_every_knob_and_changes_nothing(tmp_path: Path) -> None:
    text = document()
    assert tomllib.loads(text) == {}
    for knob in KNOBS:
        assert (f"# [{knob.name}]" if knob.kind.shape else f"# {knob.name} = ") in text
        assert knob.env in text
        assert knob.doc in text
    assert load(config(tmp_path, text), env={}) == load(config(tmp_path, ""), env={})


def test_every_default_of_the_written_file_is_a_valid_value(tmp_path: Path) -> None:
    lines = document().splitlines()
    shown = "\n".join(line.removeprefix("# ") for line in lines if " = " in line or line.startswith("# ["))
    assert "[retention]" in shown
    assert load(config(tmp_path, shown), env={}) == load(config(tmp_path, ""), env={})


def test_a_chosen_value_is_written_and_read_back(tmp_path: Path) -> None:
    text = document({"title": 'Tokens "Q1" – 2026', "prices": ["own.toml"]})
    found = load(config(tmp_path, text), env={})
    assert (found.title, found.prices) == ('Tokens "Q1" – 2026', (tmp_path / "own.toml",))


def test_a_table_is_filled_up_with_its_defaults_line_by_line(tmp_path: Path) -> None:
    text = "[retention]\nids = 3\n[retention.tenants.t_0123456789abcdef]\nids = 1\n[retention.tasks.chat]\ntraces = 0\n"
    path = config(tmp_path, text)
    found = load(path, env={})
    assert found.retention == {
        "reports": 3650,
        "billing": 3650,
        "operations": 400,
        "ids": 3,
        "traces": 7,
        "spool": 7,
        "tenants": {"t_0123456789abcdef": {"ids": 1}},
        "tasks": {"chat": {"traces": 0}},
    }
    of_table = {name: origin for name, origin in found.origins.items() if name.startswith("retention")}
    assert of_table == dict.fromkeys(("retention", "retention.ids", "retention.tenants", "retention.tasks"), str(path))
    assert load(config(tmp_path, ""), env={}).origins["retention"] == "default"


def test_a_table_of_the_environment_stands_in_place_of_the_files(tmp_path: Path) -> None:
    path = config(tmp_path, "[retention]\nids = 3\ntraces = 3\n")
    found = load(path, env={"WEIGHBRIDGE_RETENTION": '{"ids": 5}'})
    assert (found.retention["ids"], found.retention["traces"]) == (5, 7)
    assert found.origins["retention.ids"] == "environment WEIGHBRIDGE_RETENTION"
    assert "retention.traces" not in found.origins


def test_a_chosen_table_is_written_and_read_back(tmp_path: Path) -> None:
    chosen = {"ids": 5, "tasks": {"chat": {"ids": 2}}}
    text = document({"retention": chosen, "title": "March"})
    assert tomllib.loads(text) == {"title": "March", "retention": chosen}
    assert load(config(tmp_path, text), env={}).retention["tasks"] == {"chat": {"ids": 2}}


def test_named_tables_may_have_defaults_of_which_single_lines_are_changed() -> None:
    shape = Shape((), (Named("tasks", "[a-z]+", "a task", (Line("ids", DAYS, 4, ""), Line("traces", DAYS, None, "")),
                             {"chat": {"ids": 5, "traces": 6}}),))  # fmt: skip
    assert shape.parse({"tasks": {"chat": {"traces": 1}, "code": {}}}, Path()) == {
        "tasks": {"chat": {"ids": 5, "traces": 1}, "code": {"ids": 4}}
    }
    assert shape.parse({}, Path()) == {"tasks": {"chat": {"ids": 5, "traces": 6}}}


def test_each_knob_is_a_field_and_settings_are_frozen(tmp_path: Path) -> None:
    names = {field.name for field in dataclasses.fields(Settings)} - {"origins", "folder"}
    assert [knob.name for knob in KNOBS] == [name for name in Settings.__annotations__ if name in names]
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(config(tmp_path, ""), env={}).title = "x"  # type: ignore[misc]
    assert knobs.PREFIX == "WEIGHBRIDGE_"
