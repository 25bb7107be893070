"""Verdicts of people on a blinded sheet, read back: who agrees with whom, and is the strategy worse?"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.pipeline.compare.agreement import Agreement, agreement
from weighbridge.pipeline.compare.blind import Place
from weighbridge.pipeline.compare.bootstrap import Paired, paired
from weighbridge.pipeline.compare.mcnemar import exact_p
from weighbridge.pipeline.compare.workbook_rows import workbook_rows
from weighbridge.schemas.enumerations import Judgement
from weighbridge.schemas.errors import ContractError

VERDICTS: Final = ("A", "B", "same", "neither")
MARGIN: Final = 0.1
PAIRS: Final = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one person says of one item."""

    item: str
    rater: str
    word: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What people say of a strategy.

    Attributes:
        raters, pairs: how many.
        won, lost, same, neither: verdicts for the strategy, for the baseline, for none of them.
        preference: mean per pair of (for the strategy - for the baseline) / verdicts, with its interval.
        p: exact two-sided test that as many pairs are won as lost.
        agreed: of the raters with each other; nulls where there is one rater.
        judgement: what is said of the strategy.
        unknown: verdicts on items of no pair of this run.
    """

    raters: int
    pairs: int
    won: int
    lost: int
    same: int
    neither: int
    preference: Paired
    p: float
    agreed: Agreement
    judgement: Judgement
    unknown: int


def read_verdicts(paths: Sequence[Path], raters: Sequence[str] = ()) -> list[Verdict]:
    """The verdicts of files: CSV or workbook with `item`, `verdict` and, where a file has several raters, `rater`.

    Args:
        paths: of the files.
        raters: who filled each of them in; empty: the column says, else the name of the file or, where two are called
            alike, that of its folder.

    Raises:
        ContractError: a file that is none, a word that is no verdict, two verdicts of one rater on one item, or files
            whose raters cannot be told apart.
    """
    content = [_rows(path) for path in paths]
    unnamed = [at for at, rows in enumerate(content) if any(_word(row) and not _rater(row) for row in rows)]
    names = dict(zip(unnamed, _raters([paths[at] for at in unnamed]), strict=True)) if not raters else {}
    if raters and (len(raters) != len(paths) or len({name.strip() for name in raters} - {""}) != len(raters)):
        raise ContractError(
            f"{len(paths)} files and {len(raters)} raters; name each file's rater, each by another name"
        )
    held: dict[tuple[str, str], Verdict] = {}
    for at, (path, rows) in enumerate(zip(paths, content, strict=True)):
        for number, row in enumerate(rows, start=2):
            word = _word(row)
            if not word:
                continue  # not judged yet
            known = {each.lower(): each for each in VERDICTS}.get(word.lower())
            if known is None:
                raise ContractError(f"{path}, line {number}: a verdict is one of {', '.join(VERDICTS)}")
            rater = raters[at].strip() if raters else _rater(row) or names[at]
            found = Verdict((row.get("item") or "").strip(), rater, known)
            before = held.get((found.rater, found.item))
            if before is not None and before != found:
                raise ContractError(f"{path}, line {number}: {found.rater} says two things of item {found.item}")
            held[found.rater, found.item] = found
    return list(held.values())


def _word(row: Mapping[str, str]) -> str:
    return (row.get("verdict") or "").strip()


def _rater(row: Mapping[str, str]) -> str:
    return (row.get("rater") or "").strip()


def _raters(paths: Sequence[Path]) -> list[str]:
    """Who filled files in that do not say so: by their names, or by their folders where two are called alike.

    Raises:
        ContractError: neither tells them apart.
    """
    places = [path.absolute() for path in paths]
    for name in (lambda path: path.stem, lambda path: path.parent.name, lambda path: f"{path.parent.name}/{path.stem}"):
        named = [name(place) for place in places]
        if len(set(named)) == len(named):
            return named
    named = [place.stem for place in places]
    twice = next(path for path in paths if named.count(path.stem) > 1)
    raise ContractError(
        f"{twice} and another file do not say who filled them in: name raters (--rater, once for each file), give "
        "files names of their own such as ann.csv, or a column rater"
    )


def _rows(path: Path) -> list[dict[str, str]]:
    if path.suffix.lower() == ".xlsx":
        rows = workbook_rows(path)
        if rows and "item" not in rows[0]:
            raise ContractError(f"{path} has no columns item and verdict; save the sheet or the page as CSV")
        return rows
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if not {"item", "verdict"} <= set(reader.fieldnames or ()):
                raise ContractError(f"{path} has no columns item and verdict; save the sheet or the page as CSV")
            return list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ContractError(f"{path} cannot be read as CSV ({type(error).__name__}); save the sheet as CSV") from None


def judged(
    verdicts: Sequence[Verdict],
    places: Mapping[str, Place],
    *,
    clusters: Mapping[str, str | None] | None = None,
    margin: float = MARGIN,
    least: int = PAIRS,
    seed: int = 0,
) -> Judged:
    """What verdicts come to, for the strategy whose sheet it was.

    Args:
        verdicts: of all raters.
        places: pair -> where it stood.
        clusters: pair -> its task or session, drawn whole; a pair without one is a cluster of its own.
        margin: tolerated mean preference for the baseline, from 0 to 1.
        least: fewer pairs are never judged.
        seed: of the resampling.
    """
    of_item = {place.item: (pair, place) for pair, place in places.items()}
    told: dict[str, list[int]] = {}
    words: dict[str, dict[str, str]] = {}
    counts = dict.fromkeys(("won", "lost", "same", "neither"), 0)
    unknown = 0
    for each in verdicts:
        found = of_item.get(each.item)
        if found is None:
            unknown += 1
            continue
        pair, place = found
        word = (
            each.word if each.word in {"same", "neither"} else "won" if (each.word == "A") == place.on_is_a else "lost"
        )
        counts[word] += 1
        told.setdefault(pair, []).append({"won": 1, "lost": -1}.get(word, 0))
        words.setdefault(pair, {})[each.rater] = word
    means = [sum(said) / len(said) for said in told.values()]
    drawn = [(clusters or {}).get(pair) for pair in told]
    preference = paired(means, drawn, seed=seed, worst=2.0, decides=True)
    won, lost = sum(mean > 0 for mean in means), sum(mean < 0 for mean in means)
    return Judged(
        raters=len({rater for said in words.values() for rater in said}),
        pairs=len(means),
        **counts,
        preference=preference,
        p=exact_p(lost, won),
        agreed=agreement(list(words.values())),
        judgement=_judgement(preference, margin, least),
        unknown=unknown,
    )


def _judgement(preference: Paired, margin: float, least: int) -> Judgement:
    tail = (1 - preference.level) / 2
    below, above = preference.p_not_below(-margin), preference.p_beyond_below(-margin)
    if preference.pairs < least or below is None or above is None:
        return Judgement.UNDECIDED
    if above <= tail:
        return Judgement.WORSE
    return Judgement.NOT_WORSE if below <= tail else Judgement.UNDECIDED
