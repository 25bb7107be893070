"""The day of a cell that has rows enough of its own: exact, whatever their distribution.

Three limits are made of the reference, those that 5 %, 25 % and 50 % of new rows exceed. The first sees what grows at
the top, the others see what moves the middle and leaves a capped or long top where it was (a longer template). Each is
asked about the day alone and about the last five days together, which is how a shift of a few per cent comes to light.
How many of the new rows lie above a limit is beta-binomial; the six answers are one p-value by Bonferroni's rule.

Whether the rows of a cell are exchangeable at all is tested on the reference itself, every night: given how many of its
rows lie above each limit, those of any one day are hypergeometric. More days beyond 5 % than there can be at a rate of
5 % say that rows of a day go together (sessions, batches, releases), and that the promise above is not to be made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.limits import Ordered, above, ordered_twice, rank_of
from weighbridge.pipeline.baseline.season import Centred
from weighbridge.pipeline.baseline.spans import TOGETHER, Floats, still_high
from weighbridge.pipeline.baseline.tails import beta_binomial_tail, binomial_tail, hypergeometric_tail

RATES = (Fraction(5, 100), Fraction(25, 100), Fraction(50, 100))
BAND = RATES[0]
PERCENT = 5
# Fewer rows than this have no 1 % limit, and their centre is too unsure to be trusted alone.
FEWEST = 99


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Whether reference windows kept the promise that 5 % of days lie beyond 5 %; one item per cell or group.

    Attributes:
        days: days tested.
        alarms: days that would have been an alarm.
        squares: limit x item: sum over the days of squared deviations of the rows above it, in their own variances.
        noise: limit x item: variance of that sum where rows of a day have nothing in common.
    """

    days: Ints
    alarms: Ints
    squares: Floats
    noise: Floats

    def disagreement(self) -> Floats:
        """The chance of so many alarms if the promise holds; 1 where there was none. Exact."""
        return binomial_tail(self.alarms, self.days, PERCENT / 100)

    def scattered(self) -> Floats:
        """The chance that days scatter so much if rows of a day have nothing in common, at the limit that says most.

        A sum of squares of this mean and variance is close to a gamma distribution, its cube root to a normal one
        (Wilson and Hilferty); by Bonferroni's rule over the limits.
        """
        days = np.maximum(self.days, 1)
        freedom = 2 * days**2 / np.where(self.noise > 0, self.noise, 2.0 * days)
        above_mean = (np.cbrt(self.squares / days) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))
        largest = np.where(self.days > 0, above_mean.max(axis=0), -9.0)
        chances = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in largest])
        bounded: Floats = np.minimum(chances * len(self.squares), 1.0)
        return bounded

    def dispersion(self) -> Floats:
        """How far days scatter, at the limit where they do most; about 1 where rows have nothing in common."""
        return np.where(self.days > 0, self.squares.max(axis=0) / np.maximum(self.days, 1), 1.0)

    def without(self, doubted: Mask) -> SelfTest:
        """The same without some cells."""
        keep = (~doubted).astype(np.int64)
        return SelfTest(self.days * keep, self.alarms * keep, self.squares * keep, self.noise * keep)

    def together(self, group: Ints) -> SelfTest:
        """The same of every group of cells."""
        days, alarms = (np.bincount(group, weights=each).astype(np.int64) for each in (self.days, self.alarms))
        sums = [np.array([np.bincount(group, weights=each) for each in rows]) for rows in (self.squares, self.noise)]
        return SelfTest(days, alarms, *sums)


@dataclass(frozen=True, slots=True)
class Answer:
    """New rows above one limit; one item per cell.

    Attributes:
        rate: of the limit.
        day: how many of the day's rows lie above it.
        recent: how many of the last five days' rows lie above that of the reference before them.
        high: whether the day itself is high enough for these five days to be news.
    """

    rate: Fraction
    day: Ints
    recent: Ints
    high: Mask


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Every cell of a class by its own rows; arrays with one item per cell.

    Attributes:
        reference: scores of the reference window.
        days: days of it that have rows.
        upper, lower: scores of the band's ends; REFUSED where there are too few rows.
        rows: rows of the day.
        exceeding: of them above `upper`.
        earlier, recent: rows of the reference before the last five days, and of these.
        answers: one for each limit.
        test: the self-test.
    """

    reference: Ordered
    days: Ints
    upper: Ints
    lower: Ints
    rows: Ints
    exceeding: Ints
    earlier: Ints
    recent: Ints
    answers: tuple[Answer, ...]
    test: SelfTest

    def p_value(self, cluster: Floats) -> Floats:
        """Of the day; NaN where there are too few rows of the reference, or none of the day.

        Args:
            cluster: per cell how many rows count as one, because rows of a day have something in common; 1: none do.
        """
        sizes = self.reference.sizes
        alone, long = (sizes >= FEWEST) & (self.rows > 0), (self.earlier >= FEWEST) & (self.recent > 0)
        found, asked = np.ones(len(sizes)), np.zeros(len(sizes), np.int64)
        for answer in self.answers:
            found = np.minimum(found, _tail(answer.rate, answer.day, self.rows, sizes, cluster, alone))
            news = _tail(answer.rate, answer.recent, self.recent, self.earlier, cluster, long & answer.high)
            found = np.minimum(found, news)
            asked += alone.astype(np.int64) + long
        return np.where(alone, np.minimum(found * np.maximum(asked, 1), 1.0), np.nan)


def _tail(rate: Fraction, exceeding: Ints, rows: Ints, reference: Ints, cluster: Floats, usable: Mask) -> Floats:
    """P(at least so many of the rows above the limit of this rate); 1 where there is no asking."""
    out = np.ones(len(rows))
    at = np.flatnonzero(usable)
    size = cluster[at]
    # Rounded to the careful side: fewer beyond the limit, among more rows, beside fewer.
    beyond, among = np.floor(exceeding[at] / size), np.ceil(rows[at] / size)
    beside = np.floor(reference[at] / size).astype(np.int64)
    out[at] = beta_binomial_tail(beyond.astype(np.int64), among.astype(np.int64), beside, rank_of(beside, rate))
    return out


def by_own_rows(rows: Centred, cells: int, *, today: int, reference_days: int, quiet: Mask) -> OwnRows:
    """Hold a day against the days before it.

    Args:
        rows: centred rows of at least the reference window and the day.
        cells: how many there are.
        today: the day.
        reference_days: length of the window that ends before it.
        quiet: cell x day of that window: days the promise is tested on.
    """
    first, last, begin = rows.place(today - reference_days), rows.place(today), rows.place(today + 1 - TOGETHER)
    past, new, recent = slice(first, last), slice(last, None), slice(begin, None)
    reference, before = ordered_twice(rows.series[past], rows.score[past], max(begin - first, 0), cells)
    count, counted = (np.bincount(rows.series[part], minlength=cells) for part in (new, recent))
    length = quiet.shape[1]
    # Place of each row of the reference in a grid of cell x day.
    place = rows.series[past].astype(np.int64) * length + (rows.day[past] - (today - length))
    every = _grid(place, quiet.shape)
    worst = np.ones(quiet.shape)
    answers, scatter = [], []
    series, score = rows.series[past], rows.score[past]
    marked_by = {}
    # What lies above a limit lies above those that more rows exceed.
    for rate in sorted(RATES, reverse=True):
        at = np.flatnonzero(score > reference.upper(rate)[series])
        series, score, place = series[at], score[at], place[at]
        marked_by[rate] = _grid(place, quiet.shape)
    for rate in RATES:
        limit = reference.upper(rate)
        beyond = above(rows.series[new], rows.score[new], limit, cells)
        together = above(rows.series[recent], rows.score[recent], before.upper(rate), cells)
        high = still_high(float(rate), beyond / np.maximum(count, 1), together / np.maximum(counted, 1))
        answers.append(Answer(rate, beyond, together, high))
        marked = marked_by[rate] * quiet
        worst = np.minimum(worst, days_beside_all(marked, every * quiet))
        scatter.append(squared_deviations(marked, every * quiet))
    usable = (every > 0) & quiet & (reference.sizes >= FEWEST)[:, None]
    return OwnRows(
        reference=reference,
        days=(every > 0).sum(axis=1),
        upper=reference.upper(BAND),
        lower=reference.lower(BAND),
        rows=count,
        exceeding=answers[0].day,
        earlier=before.sizes,
        recent=counted,
        answers=tuple(answers),
        test=tested(worst * len(RATES), scatter, usable),
    )


def _grid(places: Ints, shape: tuple[int, ...]) -> Ints:
    """Rows per cell and day, from their places."""
    cells, length = shape
    return np.bincount(places, minlength=cells * length).reshape(cells, length)


def days_beside_all(marked: Ints, rows: Ints) -> Floats:
    """Cell x day: P(at least so many marked rows on that day), if those of all days are spread by chance."""
    all_rows, all_marked = rows.sum(axis=1), marked.sum(axis=1)
    out = np.ones(rows.shape)
    # A day that is not above the average is no alarm; most need no tail at all.
    cell, day = np.nonzero(marked * all_rows[:, None] > rows * all_marked[:, None])
    out[cell, day] = hypergeometric_tail(marked[cell, day], rows[cell, day], all_marked[cell], all_rows[cell])
    return out


@dataclass(frozen=True, slots=True)
class Scatter:
    """How far the marked rows of each day lie from their share.

    Attributes:
        squares: cell x day: squared deviation in its own variance; 0 where there is none. Its mean is 1 where rows of a
            day have nothing in common.
        noise: per cell the variance of their sum: about 2 for each day, more where days are of very different sizes.
    """

    squares: Floats
    noise: Floats


def squared_deviations(marked: Ints, rows: Ints) -> Scatter:
    """How far the marked rows of each day lie from their share, given how many of all rows are marked.

    The variance of a deviation is that of the hypergeometric law. That of their sum is the one of Pearson's statistic
    (Haldane 1937: 2 (k - 1) + (sum of 1 / p - k2 - 2 k + 2) / N), with the kurtosis of two colours in place of one.

    Args:
        marked, rows: cell x day.
    """
    all_rows, all_marked = rows.sum(axis=1, keepdims=True), marked.sum(axis=1, keepdims=True)
    share = all_marked / np.maximum(all_rows, 1)
    each = share * (1 - share)
    variance = rows * each * (all_rows - rows) / np.maximum(all_rows - 1, 1)
    known = variance > 0
    squares = np.where(known, (marked - rows * share) ** 2 / np.where(known, variance, 1.0), 0.0)
    days = known.sum(axis=1)
    uneven = np.where(known, all_rows / np.maximum(rows, 1), 0.0).sum(axis=1) - days**2
    spread, whole = np.where(each > 0, each, 1.0)[:, 0], np.maximum(all_rows, 1)[:, 0]
    pearson = 2 * (days - 1) * (1 - 1 / (spread * whole)) + uneven * (1 / spread - 6) / whole
    # Each square is divided by its own variance, which lies below that of Pearson's by the part a day is of all.
    return Scatter(squares, np.where(days > 1, np.maximum(pearson, 1.0) * (days / np.maximum(days - 1, 1)) ** 2, 0.0))


def tested(p_values: Floats, scatter: Sequence[Scatter], usable: Mask) -> SelfTest:
    """Count the days beyond the promise.

    Args:
        p_values: cell x day.
        scatter: one for each limit.
        usable: cell x day: days that are tested.
    """
    alarms = ((p_values * 100 <= PERCENT) & usable).sum(axis=1)
    days = usable.sum(axis=1)
    squares = np.array([(each.squares * usable).sum(axis=1) for each in scatter])
    return SelfTest(days, alarms, squares, np.array([np.where(days > 0, each.noise, 0.0) for each in scatter]))
