"""What a probe will send at most, and what that costs by the price book: said before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.probe.api import Api
from weighbridge.pipeline.probe.ask import Ask
from weighbridge.pipeline.probe.prompt_count import count_prompt
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.pipeline.probe.step import Step
from weighbridge.recount.recounter import Recounter, texts
from weighbridge.schemas.enumerations import Modality, TokenClass

# What templates put around a message, a tool and a prompt; generous, as this is a bound and no count.
_AROUND_MESSAGE, _AROUND_PROMPT, _AROUND_TOOL = 16, 64, 512
_MILLION = 10**6
# Where a model thinks before it answers, at least so many tokens may be asked for.
_THINKING = 1024


@dataclass(frozen=True, slots=True)
class Estimate:
    """An upper bound, retries left out.

    Attributes:
        requests: that will be sent.
        input, output: tokens at most.
        amount, currency: what they cost; null where the price book does not know the model.
    """

    requests: int
    input: int
    output: int
    amount: Decimal | None
    currency: str | None

    def __str__(self) -> str:
        cost = (
            "no price is known for this model"
            if self.amount is None
            else f"at most {self.amount.normalize():f} {self.currency}"
        )
        return f"{self.requests} requests, at most {self.input:,} tokens in and {self.output:,} out; {cost}"


def estimate(
    steps: Sequence[Step],
    api: Api,
    counts: Recounter | None,
    *,
    limit: int,
    repeat: int,
    book: PriceBook,
    provider: str,
    model: str,
    day: date,
) -> Estimate:
    """The bound for these steps: prompts as they are counted here, or one token for each byte."""
    asks = [step.ask(prompts()) for step in steps for _ in range(repeat if step.repeats else 1)]
    into = sum(_input(ask, api, counts) for ask in asks)
    out = sum(max(ask.max_tokens or limit, (_THINKING + limit) * ask.think) * ask.choices for ask in asks)
    row = book.find(provider, model, day)
    prices = [] if row is None else [row.prices.get((name, Modality.TEXT)) for name in _CLASSES]
    known = [price for price in prices if price is not None]
    amount = (into * known[0] + out * known[1]) / _MILLION if len(known) == len(_CLASSES) else None
    return Estimate(len(asks), into, out, amount, None if amount is None or row is None else row.currency)


_CLASSES = (TokenClass.INPUT_UNCACHED, TokenClass.OUTPUT_VISIBLE)


def _input(ask: Ask, api: Api, counts: Recounter | None) -> int:
    counted = None if counts is None else count_prompt(counts, ask, chat=api.chat)
    if counted is not None and counted.total is not None:
        return counted.total
    messages = ask.messages()
    size = sum(len(text.encode()) for text in texts(messages)) + _AROUND_PROMPT + _AROUND_MESSAGE * len(messages)
    return size + (0 if ask.tool is None else len(ask.tool.encode()) + _AROUND_TOOL)
