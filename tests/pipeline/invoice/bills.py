"""How a provider makes a bill, worked out call by call in plain Python: nothing here is taken from what is tested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from tests.pipeline.invoice.world import CLASSES, FIRST, World, at

from weighbridge.pipeline.invoice.contract import Contract, Discount

WIDE = Context(prec=60)
OLD = {"input_uncached": "3", "cache_read": "0.3", "cache_write_5m": "3.75", "cache_write_1h": "6",
       "output_visible": "15", "reasoning": "15"}  # fmt: skip
NEW = {"input_uncached": "2", "cache_read": "0.2", "cache_write_5m": "2.5", "cache_write_1h": "4",
       "output_visible": "10", "reasoning": "10"}  # fmt: skip
AUDIO = Decimal(40)
TURN = date(2026, 4, 10)
DAYS = (8, 12)
OLD_BATCH = {name: str(Decimal(price) / 2) for name, price in OLD.items()}
NEW_BATCH = {name: str(Decimal(price) / 2) for name, price in NEW.items()}
# Above a length no call of this world has.
OLD_LONG = {"input_uncached": "7.3", "cache_read": "0.73", "cache_write_5m": "9.1", "cache_write_1h": "14.9",
            "output_visible": "31.7", "reasoning": "31.7"}  # fmt: skip
NEW_LONG = {"input_uncached": "5.9", "cache_read": "0.59", "cache_write_5m": "7.7", "cache_write_1h": "12.1",
            "output_visible": "23.3", "reasoning": "23.3"}  # fmt: skip
WAYS = ("failed_but_billed", "retry_billed", "period_boundary", "late_data", "service_tier", "cache_lifetime",
        "price_date", "price_tier", "modality", "tool_fee", "currency", "credit_or_discount", "rounding",
        "unobserved_traffic", "unmapped_line")  # fmt: skip
_WORDS = {"input_uncached": "input", "cache_read": "cache_read", "cache_write_5m": "cache_write_5m",
          "cache_write_1h": "cache_write_1h", "output_visible": "output"}  # fmt: skip


def price_list() -> str:
    """The prices of this world as a file."""

    def told(prices: dict[str, str], audio: str) -> str:
        return ", ".join([*(f'{word} = "{prices[name]}"' for name, word in _WORDS.items()), f'audio_in = "{audio}"'])

    rows = []
    for term, plain, batch, long in (("to", OLD, OLD_BATCH, OLD_LONG), ("from", NEW, NEW_BATCH, NEW_LONG)):
        head = f'[[rows]]\nmodels = ["m"]\nvalid_{term} = {TURN}\n'
        above = f'above = [{{ input_tokens = 100000, rule = "cliff", prices = {{ {told(long, "97")} }} }}]'
        rows += [f"{head}prices = {{ {told(plain, '40')} }}\n{above}",
                 f"{head}when = {{ batch = true }}\nprices = {{ {told(batch, '20')} }}"]  # fmt: skip
    return "\n".join(['provider = "openai"', 'currency = "USD"', 'source = "made up for the tests"', *rows])


RATES = {8: "0.91", 9: "0.92", 12: "0.93", 13: "0.94", 30: "0.97"}
LATE = timedelta(hours=2)


def traffic(world: World) -> None:
    """Calls of two days on either side of a change of prices, of every kind a cause is about."""
    for number, day in enumerate(DAYS):
        step = 7 * number
        world.call(at(day, 3), input_uncached=1009 + step, output_visible=211, reasoning=53)
        world.call(at(day, 9), input_uncached=487, input_uncached_audio=131, output_visible=97 + step)
        world.call(at(day, 10), cache_read=3001, cache_write_5m=701, cache_write_1h=307, output_visible=19)
        world.call(at(day, 11), status="failed", input_uncached=173 + step, output_visible=11)
        asked = {"request_hi": day, "request_lo": day}
        world.call(at(day, 14), status="aborted", input_uncached=229, output_visible=7,
                   attempt={**asked, "attempt_number": 1})  # fmt: skip
        world.call(at(day, 15), input_uncached=229, output_visible=71, attempt={**asked, "attempt_number": 2})
        world.call(at(day, 16), input_uncached=823 + step, output_visible=67, batch=True)
        world.call(at(day, 23, 58), input_uncached=613 + step, output_visible=41,
                   attempt={"total_us": 300 * 10**6})  # fmt: skip


def agreed(ways: Collection[str] = ()) -> Contract:
    """What was agreed: 10 % off, billed in euro at the day's rate; only where a way is about it."""
    return Contract(
        "openai",
        lateness_hours=2,
        currency="EUR" if "currency" in ways else "USD",
        discounts=(Discount(Decimal("0.1")),) if "credit_or_discount" in ways else (),
    )


def bill(world: World, ways: Collection[str]) -> None:
    """The lines of a bill, by day and class, made in these ways."""
    tokens: defaultdict[tuple[date, str], int] = defaultdict(int)
    money: defaultdict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for call in world.calls:
        charged = _charged(call, ways)
        if charged is None:
            continue
        for name in CLASSES:
            count, cost, into = _priced(call, name, ways)
            if count:
                tokens[charged, into] += count
                money[charged, into] += cost
    for number in sorted({day.day for day, _ in tokens}):
        for name in ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output_visible"):
            cell = (date(2026, 4, number), name)
            if cell not in tokens:
                continue
            count, paid = tokens[cell], money[cell]
            if "unobserved_traffic" in ways and name == "input_uncached":
                count, paid = count + 1000, paid + 1000 * _seen(cell[0], name, ways) / 10**6
            paid = _after(paid, number, ways)
            start = FIRST + timedelta(days=number - 1)
            currency = "EUR" if "currency" in ways else "USD"
            world.line(str(paid), start, token_class=name, tokens=count, currency=currency, sku=f"m-{name}")
    whole: dict[str, Any] = {"model": None, "token_class": None, "currency": "EUR" if "currency" in ways else "USD"}
    if "tool_fee" in ways:
        world.line("0.03", FIRST, FIRST + timedelta(days=30), kind="tool_fee", sku="web-search", **whole)
    if "unmapped_line" in ways:
        world.line("4.2", FIRST, FIRST + timedelta(days=30), kind=None, sku="something-new", **whole)


def _charged(call: dict[str, Any], ways: Collection[str]) -> date | None:
    """The day a call is charged on; null where it is not."""
    when: datetime = call["arrived_at"]
    if call["status"] == "failed" and "failed_but_billed" not in ways:
        return None
    if call["status"] == "aborted" and "retry_billed" not in ways:
        return None
    if "period_boundary" in ways:
        when += timedelta(microseconds=call["attempt"].get("total_us", 0))
    midnight = datetime(when.year, when.month, when.day, tzinfo=when.tzinfo) + timedelta(days=1)
    if "late_data" in ways and midnight - when <= LATE:
        return None
    return when.date()


def _priced(call: dict[str, Any], name: str, ways: Collection[str]) -> tuple[int, Decimal, str]:
    """Tokens of a class, what they cost, and the class of the line they stand on."""
    day: date = call["arrived_at"].date()
    into = "output_visible" if name == "reasoning" else name
    if name == "cache_write_5m" and "cache_lifetime" in ways:
        into = "cache_write_1h"
    count = call[name]
    if not count:
        return 0, Decimal(0), into
    audio = call.get(f"{name}_audio", 0) if "modality" not in ways else 0
    batch = call.get("batch", False) and "service_tier" not in ways
    long = "price_tier" in ways and not batch
    sound = Decimal(97) if long else AUDIO
    cost = (count - audio) * _price(day, into, ways, batch=batch, long=long) + audio * sound
    return count, cost / 10**6, into


def _price(day: date, name: str, ways: Collection[str], *, batch: bool = False, long: bool = False) -> Decimal:
    old = day < TURN if "price_date" not in ways else True
    if batch:
        return Decimal((OLD_BATCH if old else NEW_BATCH)[name])
    if long:
        return Decimal((OLD_LONG if old else NEW_LONG)[name])
    return Decimal((OLD if old else NEW)[name])


def _seen(day: date, name: str, ways: Collection[str]) -> Decimal:
    """What tokens cost that nobody of ours saw: as the others of their line, of which none was long."""
    return _price(day, name, ways)


def _after(paid: Decimal, day: int, ways: Collection[str]) -> Decimal:
    """Discount (agreed, and here forgotten), currency (of the last of the month instead of the day), rounding."""
    if "currency" in ways:
        paid = WIDE.multiply(paid, Decimal(RATES[30])).quantize(Decimal("1e-18"), ROUND_HALF_EVEN, context=WIDE)
    return paid.quantize(Decimal("1e-6"), ROUND_HALF_EVEN) if "rounding" in ways else paid


def rates(world: World) -> None:
    """A euro for each dollar, by day."""
    for number, rate in RATES.items():
        row = {"base": "USD", "quote": "EUR", "rate_day": date(2026, 4, number), "rate": Decimal(rate)}
        world.rates.append({**row, "segment": "b" * 64, "segment_row": number, "revision": 0})
