"""The documentation of the command line names what there is, and nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from weighbridge.cli.main import application
from weighbridge.pipeline.ingest.importer import importers
from weighbridge.pipeline.ingest.mapping import load_mapping
from weighbridge.pipeline.settings import KNOBS

ROOT = Path(__file__).resolve().parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
IMPORTING = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
PROSE = {"does", "weighs"}  # words that follow the name of the product in a sentence
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def commands() -> dict[str, Any]:
    """Every verb by the words that call it."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                walk(inner, (*words, name))
        else:
            found[" ".join(words)] = command

    walk(typer.main.get_command(application()), ())
    return found


def test_the_table_of_verbs_is_the_list_of_verbs() -> None:
    rows = re.findall(r"^\| `([a-z ]+[a-z])(?: [^`]*)?` \|", CLI.partition("## Exit codes")[0], re.MULTILINE)
    assert sorted(rows) == sorted(commands())


@pytest.mark.parametrize("verb", commands())
def test_every_option_is_documented(verb: str) -> None:
    for parameter in commands()[verb].params:
        for option in [*parameter.opts, *parameter.secondary_opts]:
            if option.startswith("--") and option not in {"--help", "--faults"}:
                assert f"`{option}" in CLI or f" {option}`" in CLI, option


def test_every_documented_option_exists() -> None:
    known = {
        option for command in commands().values() for p in command.params for option in [*p.opts, *p.secondary_opts]
    }
    assert set(re.findall(r"--[a-z][a-z-]+", CLI)) <= known | {"--help", "--version"}


def test_the_table_of_settings_is_the_list_of_settings() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(WEIGHBRIDGE_\w+)` \| `(.+?)` \| (.+) \|$", CLI, re.MULTILINE)
    assert rows == [(knob.name, knob.env, json.dumps(knob.default), knob.doc) for knob in KNOBS]


def test_every_importer_is_documented_and_no_other() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", IMPORTING, re.MULTILINE)) == set(importers())


def test_the_mapping_file_of_the_documentation_can_be_used(tmp_path: Path) -> None:
    (block,) = re.findall(r"^    \[source\]\n(?:    .*\n|\n)+", IMPORTING, re.MULTILINE)
    text = re.sub(r"^    ", "", block, flags=re.MULTILINE)
    tomllib.loads(text)
    (tmp_path / "mapping.toml").write_text(text)
    mapping = load_mapping(tmp_path / "mapping.toml")
    assert (mapping.name, mapping.leaves) == (
        "acme-gateway",
        {"usage.input_total": "prompt", "usage.output_total": "completion"},
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_inside_the_documentation_is_broken(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_readme_shows_verbs_that_exist() -> None:
    shown = set(re.findall(r"weighbridge ([a-z]+(?: (?:ls|show|ack|waive))?)", (ROOT / "README.md").read_text()))
    verbs = set(commands()) | {verb.split()[0] for verb in commands()}
    assert shown - verbs <= PROSE
    assert {"init", "ingest", "reconcile", "report", "findings ls", "read", "digest", "explain", "demo"} <= shown
