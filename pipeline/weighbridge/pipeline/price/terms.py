"""The terms a price is for, and the terms a reading was served on: service tier, batch, region and time of day.

    a row without terms      the default service tier, no batch job, no region that has a price of its own, any time
    a reading without terms  nothing was said, which is the same; a tier that is told as "auto" is none that is known

An hour of the day is that of the request's arrival, on the clock of the zone the row names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DEFAULT, AUTO = "default", "auto"
# A speed that is asked for by itself: no provider chooses it for `auto`.
FAST = "fast"
# A region that is everywhere has no price of its own.
EVERYWHERE = "global"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(_DAYS)
_HOURS = re.compile(
    rf"(?:({_DAY})(?:-({_DAY}))? )?"
    r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]|24(?=:00)):([0-5]\d) ([A-Za-z][A-Za-z0-9_+/-]{1,63})"
)


@dataclass(frozen=True, slots=True)
class Hours:
    """Some hours of each day, or of some days of the week.

    Attributes:
        begin, end: local minute of the day, the first inclusive, the second exclusive; an end before its begin is on
            the next day.
        zone: name of the time zone whose clock they are read from.
        days: first and last day of the week they begin on, Monday is 0; a last before its first is in the next week.
            Null: every day.
    """

    begin: int
    end: int
    zone: str
    days: tuple[int, int] | None = None

    @classmethod
    def of(cls, text: str) -> Hours:
        """From "16:30-00:30 UTC", or "Mon-Fri 10:00-24:00 UTC".

        Raises:
            ValueError: it is no such text; the message says what to write.
        """
        found = _HOURS.fullmatch(text)
        if found is None:
            raise ValueError('is no span of hours such as "16:30-00:30 UTC" or "Mon-Fri 08:00-20:00 Europe/Berlin"')
        begin, end = (60 * int(found[at]) + int(found[at + 1]) for at in (3, 5))
        if begin == end:
            raise ValueError("ends when it begins; leave it out where the price holds at any time")
        try:
            ZoneInfo(found[7])
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(
                "names a time zone that is not known here; write one such as UTC or Asia/Shanghai"
            ) from None
        first = None if found[1] is None else _DAYS.index(found[1])
        last = first if found[2] is None else _DAYS.index(found[2])
        return cls(begin, end, found[7], None if first is None or last is None else (first, last))

    def hold_at(self, at: datetime) -> bool:
        """Whether a request that arrived at this UTC time arrived in these hours."""
        local = at.replace(tzinfo=at.tzinfo or UTC).astimezone(ZoneInfo(self.zone))
        minute = 60 * local.hour + local.minute
        if self.begin < self.end:
            return self.begin <= minute < self.end and self._on(local.weekday())
        # What began on a day goes on in the first minutes of the next.
        if minute < self.end:
            return self._on((local.weekday() - 1) % len(_DAYS))
        return minute >= self.begin and self._on(local.weekday())

    def _on(self, day: int) -> bool:
        if self.days is None:
            return True
        first, last = self.days
        return first <= day <= last if first <= last else day >= first or day <= last

    def __str__(self) -> str:
        begin, end = (f"{at // 60:02}:{at % 60:02}" for at in (self.begin, self.end))
        names = [] if self.days is None else [_DAYS[day] for day in dict.fromkeys(self.days)]
        return f"{'-'.join(names)} {begin}-{end} {self.zone}".lstrip()


@dataclass(frozen=True, slots=True)
class Served:
    """The terms a reading was served on, as far as they are told.

    Attributes:
        service_tier: as the table `reading` names it; null: nothing was said.
        batch: whether it was part of a batch job; null: nothing was said.
        region: where it was served; null: nothing was said.
        at: when the request arrived, UTC; null: unknown.
    """

    service_tier: str | None = None
    batch: bool | None = None
    region: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms a row is for; those of a plain row are the standard ones.

    Attributes:
        service_tier: null: the default one.
        batch: whether it is for batch jobs.
        region: null: wherever no other price holds.
        hours: null: at any time that no other row names.
    """

    service_tier: str | None = None
    batch: bool = False
    region: str | None = None
    hours: Hours | None = None

    @property
    def content(self) -> list[str]:
        """What makes two rows different ones; nothing for standard terms."""
        if self == Terms():
            return []
        return ["terms", self.service_tier or "", str(self.batch), self.region or "", str(self.hours or "")]

    def fit(self, served: Served) -> bool | None:
        """Whether a reading was served on these terms; null where it cannot be told (its time is not known)."""
        tier = None if served.service_tier == DEFAULT else served.service_tier
        region = None if served.region == EVERYWHERE else served.region
        if (tier, bool(served.batch), region) != (self.service_tier, self.batch, self.region):
            return False
        if self.hours is None:
            return True
        return None if served.at is None else self.hours.hold_at(served.at)

    def __str__(self) -> str:
        told = {"tier": self.service_tier, "batch": self.batch or None, "region": self.region, "hours": self.hours}
        return " ".join(name if value is True else f"{name}={value}" for name, value in told.items() if value)
