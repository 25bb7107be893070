"""A comparison composed: where answers come from, whose keys open them, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weighbridge.pipeline.compare.answer import Side
from weighbridge.pipeline.compare.blind import blinded, place
from weighbridge.pipeline.compare.demo import demo_plan
from weighbridge.pipeline.compare.eviction import Forgotten, Visible, forgotten, shared_beginnings
from weighbridge.pipeline.compare.plan import Plan
from weighbridge.pipeline.compare.recording import BASELINES, read_recording
from weighbridge.pipeline.compare.run_folder import read_run
from weighbridge.pipeline.compare.runner import run as run_plan
from weighbridge.pipeline.compare.sheet import write_sheet
from weighbridge.pipeline.compare.verdicts import VERDICTS, Judged, judged, read_verdicts
from weighbridge.pipeline.content.comparison import OpenedRun, open_run, texts
from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.run.changes import note_access
from weighbridge.pipeline.run.home import COMPARISONS, Home, init_home
from weighbridge.pipeline.settings import Settings
from weighbridge.schemas.errors import ConfigError, ContractError

AT = "#"
_NO_KEYS = (
    "no keys of token ids are named; set content_keys to a folder, or content_key_command to the command that asks a "
    "key service: answers are kept encrypted or not at all"
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is compared.

    Attributes:
        off: the baseline.
        on: the strategies.
        visible: strategy -> what is left of each prompt, where traces say so.
        shared: cluster -> length of the beginning its prompts have in common.
        shut: traces that do not open; what they told is missing from `visible`.
    """

    off: Side
    on: list[Side]
    visible: Mapping[str, list[Visible]] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    shut: int = 0

    @property
    def forgotten(self) -> list[Forgotten]:
        """Strategies that lost a system prompt."""
        found = (forgotten(side.name, self.visible.get(side.name, [])) for side in self.on)
        return [each for each in found if each is not None]


def run_comparison(home: Home, plan: Plan, folder: Path | None = None) -> Path:
    """Run a plan under the agent, with the keys of an installation; the folder of the run.

    Args:
        home: the installation.
        plan: what is to be run.
        folder: where it goes; null: a new one of the installation.

    Raises:
        ConfigError: no keys are named, the folder is not empty, or the plan cannot be run as written.
        RunnerError: the runner ended for another reason.
    """
    key_provider(home.settings)
    place = folder or home.root / COMPARISONS / f"{datetime.now(tz=UTC):%Y%m%dT%H%M%S}"
    run_plan(plan, place.absolute(), home.settings.key_file, _keys_of(home.settings))
    return place


def demonstration(out: Path) -> tuple[Home, Plan]:
    """An installation of its own for the demonstration, and its plan.

    Raises:
        ConfigError: the folder cannot be used.
    """
    given = {"title": "Comparison of a demonstration", "content_keys": "keys/content"}
    (out.expanduser().absolute() / "keys" / "content").mkdir(mode=0o700, parents=True, exist_ok=True)
    return init_home(out, given=given), demo_plan()


def opened(home: Home, folder: Path) -> OpenedRun:
    """A run with its ids and traces.

    Raises:
        ConfigError: no keys are named.
        ContractError: the folder is no run that ended, or its ids do not open.
    """
    keys = key_provider(home.settings)
    if keys is None:
        raise ConfigError(_NO_KEYS)
    return open_run(read_run(folder), keys)


def sheet(home: Home, folder: Path, strategy: str, out: Path, most: int | None = None) -> list[Path]:
    """Write a blinded sheet of a strategy's answers beside the baseline's; its files. The log of changes says so first.

    Args:
        home: whose keys open the run, and blind the sheet.
        folder: of the run.
        strategy: whose answers.
        out: a new folder; it will hold prompts and answers in clear.
        most: items at most, null for all.

    Raises:
        ConfigError: no keys, no such strategy, no tokenizer, nothing to judge, or the folder is not empty.
        ContractError: the folder is no run that ended, or its ids do not open.
    """
    run = read_run(folder)
    note_access(home, datetime.now(tz=UTC), "compare sheet", f"{run.about['made_at']} {strategy}")
    items = blinded(home.key, run.about["made_at"], strategy, texts(run, opened(home, folder), strategy))
    return write_sheet(out, items[:most])


def read_back(
    home: Home, folder: Path, strategy: str, files: Sequence[Path], margin: float, raters: Sequence[str] = ()
) -> Judged:
    """What verdicts on a sheet come to.

    Args:
        home: whose key blinded the sheet.
        folder: of the run.
        strategy: whose answers were judged.
        files: as they came back.
        margin: tolerated preference for the baseline.
        raters: who filled each file in; empty: as files, their columns or their folders say.

    Raises:
        ConfigError: the run has no such strategy.
        ContractError: the folder is no run that ended, a file is none, or nothing is judged yet.
    """
    run = read_run(folder)
    rows = run.rows.filter(strategy=strategy)
    able = [each["name"] for each in run.about["strategies"][1:]]
    if rows.is_empty() or strategy not in able:
        named = ", ".join(able)
        raise ConfigError(f"{folder} has no strategy {strategy!r}; it has {named}")
    places = {pair: place(home.key, run.about["made_at"], strategy, pair) for pair in rows["pair"].unique().sort()}
    told = read_verdicts(files, raters)
    if not told:
        raise ContractError(f"no verdict is filled in yet; write one of {', '.join(VERDICTS)} beside each item judged")
    clusters = dict(rows.select("pair", "cluster").iter_rows())
    return judged(told, places, clusters=clusters, margin=margin)


def _keys_of(settings: Settings) -> dict[str, Any]:
    if settings.content_key_command:
        return {"command": list(settings.content_key_command)}
    if settings.content_key_variable:
        return {"variable": settings.content_key_variable}
    if settings.content_keys is None:
        raise ConfigError(_NO_KEYS)
    return {"folder": str(settings.content_keys)}


@dataclass(frozen=True, slots=True)
class Source:
    """What a source holds, and the strategy it names."""

    sides: list[Side]
    name: str | None
    visible: Mapping[str, list[Visible]] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    shut: int = 0


def source_of(source: str, home: Home | None = None) -> Source:
    """The strategies of a source, the one it names, and what traces say of them.

    Args:
        source: a run folder or a file of recorded answers; after `#` the name of one of its strategies.
        home: whose keys open a run folder.

    Raises:
        ConfigError: there is no such file, or no such strategy in it.
        ContractError: it cannot be read as answers.
    """
    place, _, name = source.partition(AT)
    path = Path(place)
    if not place or not path.exists():
        raise ConfigError(f"there is no {source!r}; name a run folder, or a file with one answer a line")
    if not path.is_dir():
        found = Source(read_recording(path), name or None)
    elif home is None:
        raise ConfigError(
            f"{place} is a run, and its ids are encrypted; name the installation with its keys (--config)"
        )
    else:
        run = opened(home, path)
        clusters = {pair: answer.cluster for pair, answer in run.sides[0].answers.items()}
        found = Source(run.sides, name or None, run.visible, shared_beginnings(run.prompts, clusters), run.shut)
    if name and name not in [side.name for side in found.sides]:
        raise ConfigError(f"{place} has no strategy {name!r}; it has {', '.join(side.name for side in found.sides)}")
    return found


def chosen(first: str, second: str | None, home: Home | None = None) -> Chosen:
    """The baseline and the strategies that two sources name, or one that holds all of them.

    Raises:
        ConfigError: nothing is left to hold against the baseline, or which one it is cannot be told.
        ContractError: see `source_of`.
    """
    found = source_of(first, home)
    off = _baseline(found.sides, found.name, first)
    if second is None:
        on = [side for side in found.sides if side.name != off.name]
    else:
        found = source_of(second, home)
        named = [side for side in found.sides if found.name is None or side.name == found.name]
        on = [side for side in named if side.name not in BASELINES] or named
        on = [_renamed(side, off.name, Path(second.partition(AT)[0])) for side in on]
    if not on:
        raise ConfigError(f"{first} holds {off.name} alone; name a second source, or a file with several strategies")
    return Chosen(off, on, found.visible, found.shared, found.shut)


def _baseline(sides: Sequence[Side], name: str | None, source: str) -> Side:
    wanted = [side for side in sides if (side.name in BASELINES if name is None else side.name == name)]
    if len(wanted) == 1:
        return wanted[0]
    if len(sides) == 1:
        return sides[0]
    raise ConfigError(
        f"{source} holds {', '.join(side.name for side in sides)}; say which one is the baseline: {source}{AT}NAME"
    )


def _renamed(side: Side, taken: str, path: Path) -> Side:
    """Two files may name their answers alike; the second is then called by its file."""
    return side if side.name != taken else replace(side, name=f"{path.stem}.{side.name}")
