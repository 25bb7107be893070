"""Rows that are not there any more: which files may lack them, because receipts speak of rows of their days.

A receipt names the days of what went, and how many rows; an account the days its rows were put on. So a receipt excuses
rows of the files that have a day in common with it, as many as it counts and each of its rows once. Whose they were is
not asked: neither an account nor what is gone says it. What is excused is as much as can be (a maximum flow from files
to receipts), so that rows which went lawfully are never taken for lost ones.

Not excused by it:

    method = cleared    the rows stay, a column of theirs went
    close               rows of a pack: nothing of the lake
    a changed receipt   its id is not the hash of what it says
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from datetime import date

from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.receipt import receipt_id, scope_of

# First and last day, both inclusive.
Span = tuple[date, date]


def gone(lake: Lake, tables: Collection[str]) -> Counter[Span]:
    """Days -> rows of these tables that went from the lake with a receipt."""
    rows: Counter[Span] = Counter()
    for receipt in lake.scan("receipt").collect().iter_rows(named=True):
        about = receipt["table_name"] in tables and receipt["method"] != str(ReceiptMethod.CLEARED)
        if about and "close" not in scope_of(receipt["scope"]) and receipt_id(receipt) == receipt["receipt_id"]:
            rows[span(receipt["first_day"], receipt["last_day"])] += receipt["rows"]
    return rows


def span(first: date | None, last: date | None) -> Span:
    """The days of something; what does not say them may be of any."""
    return first or date.min, last or date.max


def excused(missing: Mapping[str, int], days: Mapping[str, Span], erased: Mapping[Span, int]) -> dict[str, int]:
    """File -> how many of its missing rows are excused; files of which none is are left out.

    Args:
        missing: file -> rows that are not there.
        days: file -> the days its rows were put on.
        erased: days -> rows that went with a receipt (`gone`).
    """
    wanted: Counter[Span] = Counter()
    for file, rows in missing.items():
        wanted[days[file]] += rows
    given = _flow(wanted, erased)
    out: dict[str, int] = {}
    for file in sorted(missing):
        rows = min(missing[file], given[days[file]])
        given[days[file]] -= rows
        if rows:
            out[file] = rows
    return out


def _flow(wanted: Mapping[Span, int], erased: Mapping[Span, int]) -> Counter[Span]:
    """Days of files -> how many of their rows can be excused together with all others.

    Each receipt is first used up for the files that end first; what that leaves open is found along paths on which
    files give way to one another.
    """
    meets = {of: sorted((by for by in erased if _meet(of, by)), key=lambda by: by[1]) for of in wanted}
    free, given = Counter(erased), Counter[Span]()
    used: dict[Span, Counter[Span]] = {by: Counter() for by in erased}

    def use(of: Span, by: Span, rows: int) -> None:
        used[by][of] += rows
        free[by] -= rows
        given[of] += rows

    for of in sorted(wanted, key=lambda of: of[1]):
        for by in meets[of]:
            if rows := min(wanted[of] - given[of], free[by]):
                use(of, by, rows)
    for of in wanted:
        while given[of] < wanted[of] and (path := _path(of, meets, used, free)):
            # files and receipts in turn: the last receipt has room, and each before it gets room from the next one
            rows = min(wanted[of] - given[of], free[path[-1]], *(used[path[n]][path[n + 1]] for n in _givers(path)))
            for place in _givers(path):
                used[path[place]][path[place + 1]] -= rows
                used[path[place + 2]][path[place + 1]] += rows
            used[path[1]][of] += rows
            free[path[-1]] -= rows
            given[of] += rows
    return given


def _givers(path: list[Span]) -> Iterable[int]:
    return range(1, len(path) - 2, 2)


def _path(
    start: Span, meets: Mapping[Span, list[Span]], used: Mapping[Span, Counter[Span]], free: Mapping[Span, int]
) -> list[Span]:
    """The shortest way from files of these days over receipts and files that use them to a receipt with room."""
    came: dict[tuple[bool, Span], tuple[bool, Span] | None] = {(False, start): None}
    queue: deque[tuple[bool, Span]] = deque(came)
    while queue:
        here = queue.popleft()
        is_receipt, place = here
        if is_receipt and free[place]:
            path: list[Span] = []
            step: tuple[bool, Span] | None = here
            while step is not None:
                path.append(step[1])
                step = came[step]
            return path[::-1]
        around = [of for of, rows in used[place].items() if rows] if is_receipt else meets[place]
        for each in around:
            beside = (not is_receipt, each)
            if beside not in came:
                came[beside] = here
                queue.append(beside)
    return []


def _meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
