"""Every figure of the shipped book stands in one of its two sources, and every disagreement is explained."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.keys import KEYS, PriceKey
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.terms import Served, Terms
from weighbridge.schemas.enumerations import FeeKind, Modality, TokenClass

GENAI_STATE = date(2026, 8, 21)
LITELLM_SEEN = date(2026, 11, 29)
MILLION = Decimal(10) ** 6

# Names under which the sources know a model.
NAMES = {
    "davinci:2023-07-21-v2": "davinci-002",
    "models/gemini-2.5-pro": "gemini-2.5-pro",
    "models/gemini-2.5-flash": "gemini-2.5-flash",
}
LITELLM_NAMES = {
    ("openai", "gpt-4o-audio-preview"): "gpt-4o-audio-preview-2024-12-17",
    ("openai", "gpt-4o-mini-audio-preview"): "gpt-4o-mini-audio-preview-2024-12-17",
    ("azure", "deepseek-v4-pro"): "azure_ai/deepseek-v4-pro",
    ("azure", "grok-4-1-fast-non-reasoning"): "azure_ai/grok-4-1-fast-non-reasoning",
    ("google", "gemini-3-pro-preview"): "vertex_ai/gemini-3-pro-preview",
    ("cohere", "embed-v4.0"): "cohere/embed-v4.0",
}
LITELLM_PREFIXES = {"azure": "azure/", "google": "gemini/", "xai": "xai/", "mistral": "mistral/", "groq": "groq/"} | {
    "perplexity": "perplexity/"
}
LITELLM_FIELDS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_read_input_token_cost": "cache_read",
    "cache_read_input_audio_token_cost": "cache_read_audio",
    "cache_creation_input_token_cost": "cache_write",
    "cache_creation_input_token_cost_above_1hr": "cache_write_1h",
    "input_cost_per_audio_token": "audio_in",
    "output_cost_per_audio_token": "audio_out",
    "input_cost_per_image_token": "image_in",
    "output_cost_per_image_token": "image_out",
}
GENAI_FIELDS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "input_audio_mtok": "audio_in",
    "output_audio_mtok": "audio_out",
    "cache_audio_read_mtok": "cache_read_audio",
}

# (source, provider, models, figures): why the book does not follow that source there.
EXPLAINED: dict[tuple[str, str, str, str], str] = {
    ("litellm", "openai", r"gpt-(5\.6|6).*", "cache_write_unknown"): "two prices, by a lifetime that is not reported",
    ("litellm", "azure", r"gpt-5\.6.*", "cache_write_unknown"): "as for OpenAI, where longer lifetimes cost more",
    ("litellm", "azure", "text-embedding-3-large", "input"): "has the regional price, a tenth higher",
    ("litellm", "anthropic", "claude-sonnet-4-5.*", "limit"): "lets no more than 200,000 tokens in",
    ("litellm", "anthropic", "claude-(opus|sonnet)-4-6.*", "limit"): "knows the time after the limit only",
    ("litellm", "mistral", "mistral-tiny", "cache_read"): "this model never had cached input",
    ("genai", "openai", r"gpt-5\.5.*", "limit"): "has no higher price above 272,000 tokens of input",
    ("genai", "azure", r"gpt-5\.5.*", "limit"): "has no higher price above 272,000 tokens of input",
    ("genai", "openai", "gpt-4o-2024-05-13", "input|output|cache_read"): "files it under the later versions",
    ("genai", "azure", "gpt-4o-2024-05-13", "input|output|cache_read"): "files it under the later versions",
    ("genai", "openai", "o3.*", "cache_read"): "repeats the price after the cut for the time before it",
    ("genai", "azure", "o4-mini.*", "cache_read"): "rounds it",
    ("genai", "anthropic", "claude-fable-5-1", "cache_read"): "is older and takes it for claude-fable-5",
    ("genai", "anthropic", "claude-opus-5-5", "input|output|cache_.*"): "is older and takes it for claude-opus-5",
    ("genai", "anthropic", "claude-sonnet-5-5", "cache_read"): "is older and takes it for claude-sonnet-5",
    (
        "genai",
        "google",
        r"gemini-2\.5-flash-image|gemini-3-pro-image-preview",
        "output",
    ): "has the price of images only",
    ("genai", "xai", r"grok-(4\.|build|code).*", "limit"): "has no higher prices for long input",
    ("genai", "xai", "grok-code-fast.*", "input|output|cache_read"): "does not know that the name was moved",
    ("genai", "mistral", "mistral-medium.*|ministral-8b-2512", "input|output"): "takes it for an earlier model",
    ("genai", "mistral", "mistral-embed", "output"): "an embedding has no output tokens",
    ("genai", "deepseek", "deepseek-(chat|reasoner)", "input|output|cache_read"): "has an older price, by the hour",
}


@pytest.mark.real
def test_every_figure_of_the_book_is_in_its_sources(shared_real: Path) -> None:
    sources = Sources(shared_real / "prices")
    wrong, used = [], set()
    for row in PriceBook.load().rows:
        if row.terms != Terms() or row.provider in PASSED_ON:
            continue
        own = figures_of(row)
        told = {"litellm": sources.litellm(row), "genai": sources.genai(row)}
        known = {name: figures for name, figures in told.items() if figures is not None}
        if not known:
            wrong.append(f"{row.where}: no source knows {row.model}")
        for figure in sorted({*own, *(name for figures in known.values() for name in figures)}):
            said = {name: figures[figure] for name, figures in known.items() if figure in figures}
            # A limit only ever leaves more unpriced, so it may be narrower than both, with an explanation.
            if figure in own and figure != "limit" and own[figure] not in said.values():
                wrong.append(f"{row.where}, {row.model}: {figure} is {own[figure]}, the sources say {said}")
            for name, value in said.items():
                if value != own.get(figure):
                    reasons = [key for key in EXPLAINED if explains(key, name, row, figure)]
                    used.update(reasons)
                    if not reasons:
                        wrong.append(f"{row.where}, {row.model}: {figure} is {own.get(figure)}, {name} has {value}")
    assert not wrong, "\n".join(wrong)
    assert set(EXPLAINED) - used == set(), "these explanations explain nothing"


# Ours for a price under other terms -> how litellm's fields for it end.
TERMS = {
    Terms(service_tier="flex"): "_flex",
    Terms(service_tier="priority"): "_priority",
    Terms(batch=True): "_batches",
}
# Providers that charge what the makers of the models do.
PASSED_ON = {"openrouter"}


@pytest.mark.real
def test_every_price_under_other_terms_or_above_a_length_is_that_of_litellm(shared_real: Path) -> None:
    sources = Sources(shared_real / "prices")
    seen: Counter[str] = Counter()
    for row in PriceBook.load().rows:
        if row.provider in PASSED_ON or row.terms.region or row.terms.hours or row.terms.service_tier == "fast":
            continue
        entry = sources.entry(row)
        ending = "" if row.terms == Terms() else TERMS[row.terms]
        priced = [("", row.prices)] if ending else []
        priced += [(f"_above_{tier.above // 1000}k_tokens", tier.prices) for tier in row.above]
        for above, prices in priced:
            seen[f"{above[:6]}{ending}"] += 1
            for key, cells in KEYS.items():
                if cells[0] not in prices or (prices[cells[0]], key) == (prices.get(like(cells[0])), key):
                    continue
                fields = [field for field, name in LITELLM_FIELDS.items() if named(name, row.provider) == key]
                said = [
                    entry[field + above + ending] for field in fields if entry.get(field + above + ending) is not None
                ]
                assert prices[cells[0]] in [Decimal(repr(value)) * MILLION for value in said], (row.where, key, said)
        assert all(tier.rule == "cliff" and not tier.counted for tier in row.above)
    assert len(seen) == 7
    assert min(seen.values()) > 5, seen


@pytest.mark.real
def test_regions_and_the_fast_tier_cost_as_many_times_more_as_litellm_says(shared_real: Path) -> None:
    sources, book = Sources(shared_real / "prices"), PriceBook.load()
    seen: Counter[str] = Counter()
    for row in book.rows:
        if row.terms.region is None and row.terms.service_tier != "fast":
            continue
        entry = sources.entry(row)
        special = entry.get("provider_specific_entry") or {}
        name = row.terms.region or "fast"
        told = special.get(name, entry.get(f"regional_processing_uplift_multiplier_{name}"))
        usual = book.find(row.provider, row.model, LITELLM_SEEN, Served(batch=row.terms.batch))
        assert usual is not None, row.where
        assert row.prices == {cell: price * Decimal(repr(told)) for cell, price in usual.prices.items()}, row.where
        assert [(tier.above, tier.prices) for tier in row.above] == [
            (tier.above, {cell: price * Decimal(repr(told)) for cell, price in tier.prices.items()})
            for tier in usual.above
        ]
        assert row.fees == usual.fees
        seen[f"{row.provider} {name}"] += 1
    assert set(seen) == {"anthropic us", "anthropic fast", "openai eu", "openai us"}
    assert min(seen.values()) > 2, seen


@pytest.mark.real
def test_prices_off_peak_hold_in_the_hours_of_litellm(shared_real: Path) -> None:
    sources, book = Sources(shared_real / "prices"), PriceBook.load()
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    seen = 0
    for model in sorted({row.model for row in book.rows if row.terms.hours}):
        rows = [row for row in book.rows if row.model == model and row.terms.hours]
        entry = sources.entry(rows[0])["off_peak_pricing"]
        told = set()
        for window in entry["windows"]:
            spans = [window["hours_utc"]] if isinstance(window["hours_utc"], str) else window["hours_utc"]
            days = f"{names[window['weekdays'][0] - 1]}-{names[window['weekdays'][-1] - 1]}"
            told |= {f"{days} {span[:6]}{span[6:].replace('00:00', '24:00')} UTC" for span in spans}
        assert {str(row.terms.hours) for row in rows} == told
        for row in rows:
            seen += 1
            for field, key in (("input", "input"), ("output", "output"), ("cache_read_input", "cache_read")):
                cost = Decimal(repr(entry[f"{field}_token_cost" if "read" in field else f"{field}_cost_per_token"]))
                assert row.prices[KEYS[key][0]] == cost * MILLION
    assert seen == 12


@pytest.mark.real
def test_what_is_passed_on_costs_what_its_maker_or_genai_prices_say(shared_real: Path) -> None:
    book = PriceBook.load()
    makers = {"openai": "openai", "anthropic": "anthropic", "google": "google", "x-ai": "xai"}
    sources = Sources(shared_real / "prices")
    for row in book.rows:
        if row.provider not in PASSED_ON:
            continue
        maker, model = row.model.split("/")
        name = {"claude-sonnet-4.5": "claude-sonnet-4-5", "claude-sonnet-4.6": "claude-sonnet-4-6"}.get(model, model)
        name = re.sub(r"claude-4\.(\d)-sonnet.*", r"claude-sonnet-4-\1", name)
        day = row.valid_to - timedelta(days=1) if row.valid_to else LITELLM_SEEN
        own = book.find(makers[maker], name, day)
        told = sources.genai(row) or {}
        for key, cells in KEYS.items():
            if cells[0] in row.prices:
                likes = [own.prices.get(cells[0]) if own else None, told.get(key)]
                if cells[0][0] == TokenClass.CACHE_WRITE_UNKNOWN and own:
                    likes.append(own.prices.get((TokenClass.CACHE_WRITE_5M, Modality.TEXT)))
                if key == "reasoning" or key.endswith(
                    ("_video", "_image", "video_in", "image_in", "video_out", "image_out")
                ):
                    likes.append(row.prices.get(like(cells[0])))
                assert row.prices[cells[0]] in likes, (row.where, key, likes)


@pytest.mark.real
def test_a_search_costs_at_anthropic_what_litellm_says(shared_real: Path) -> None:
    sources = Sources(shared_real / "prices")
    costs = set()
    for row in PriceBook.load().rows:
        if row.provider == "anthropic" and row.holds_on(LITELLM_SEEN) and row.terms == Terms():
            entry = sources.entry(row)
            costs |= set(entry.get("search_context_cost_per_query", {}).values())
            assert row.fees[FeeKind.WEB_SEARCH] == 10
    assert {Decimal(repr(cost)) * 1000 for cost in costs} == {Decimal(10)}


@pytest.mark.real
def test_what_is_charged_by_use_is_that_of_litellm_for_the_very_model(shared_real: Path) -> None:
    sources = Sources(shared_real / "prices")
    seen: Counter[str] = Counter()
    sizes = {FeeKind.REQUEST_LOW: "low", FeeKind.REQUEST_MEDIUM: "medium", FeeKind.REQUEST_HIGH: "high"}
    for row in PriceBook.load().rows:
        if row.provider in {"anthropic", *PASSED_ON}:
            continue
        entry = sources.entry(row)
        by_size = entry.get("search_context_cost_per_query") or {}
        each = {size: Decimal(repr(cost)) * 1000 for size, cost in by_size.items()}
        for kind, fee in row.fees.items():
            seen[row.provider] += 1
            if kind is FeeKind.CITATION_TOKEN:
                assert fee == Decimal(repr(entry["citation_cost_per_token"])) * 1000
            elif kind in sizes:
                assert fee == each[f"search_context_size_{sizes[kind]}"], row.where
            else:
                assert set(each.values()) == {fee}, row.where
        # 25 is the preview of the search; which of the two was used, no count tells.
        if row.provider == "openai" and "litellm" in row.origin and set(each.values()) == {Decimal(10)}:
            assert row.fees == {FeeKind.WEB_SEARCH: Decimal(10)}, row.where
    assert set(seen) == {"openai", "azure", "groq", "perplexity"}
    assert min(seen.values()) > 1, seen


def like(cell: PriceKey) -> PriceKey:
    """The cell whose price another repeats: reasoning that of output, a modality that of text."""
    token_class, modality = cell
    if modality is not Modality.TEXT:
        return token_class, Modality.TEXT
    return (
        (TokenClass.OUTPUT_VISIBLE, Modality.TEXT)
        if token_class is TokenClass.REASONING
        else (token_class, Modality.AUDIO)
    )


def named(name: str, provider: str) -> str:
    if name != "cache_write":
        return name
    return "cache_write_5m" if provider == "anthropic" else "cache_write_unknown"


def explains(key: tuple[str, str, str, str], source: str, row: PriceRow, figure: str) -> bool:
    known, provider, models, figures = key
    return (known, provider) == (source, row.provider) and bool(
        re.fullmatch(models, row.model) and re.fullmatch(figures, figure)
    )


Figures = dict[str, Decimal | int | None]


def figures_of(row: PriceRow) -> Figures:
    own = {key: row.prices[cells[0]] for key, cells in KEYS.items() if cells[0] in row.prices}
    return {**plain(own), "limit": row.up_to_input_tokens}


def plain(prices: dict[str, Decimal]) -> Figures:
    """Without the figures that only repeat another: reasoning like output, a modality like text."""
    out: Figures = {**prices}
    likes = {"reasoning": "output"}
    for modality in ("audio", "image", "video"):
        likes |= {f"{modality}_in": "input", f"{modality}_out": "output", f"cache_read_{modality}": "cache_read"}
    for key, like in likes.items():
        if key in prices and prices[key] == prices.get(like):
            del out[key]
    return out


class Sources:
    """The two books, asked for the figures of one of our rows, in the time that row holds."""

    def __init__(self, folder: Path) -> None:
        self._litellm = json.loads(gzip.decompress((folder / "litellm_model_prices.json.gz").read_bytes()))
        genai = json.loads((folder / "genai_prices_data.json").read_text(encoding="utf-8"))
        self._genai = {{"x-ai": "xai"}.get(provider["id"], provider["id"]): provider for provider in genai}

    def litellm(self, row: PriceRow) -> Figures | None:
        if not row.holds_on(LITELLM_SEEN) and "litellm" not in row.origin:
            return None
        model = NAMES.get(row.model, row.model)
        name = LITELLM_NAMES.get((row.provider, model), LITELLM_PREFIXES.get(row.provider, "") + model)
        entry = self._litellm.get(name)
        if entry is None:
            return None
        prices = {key: Decimal(repr(entry[field])) * MILLION for field, key in LITELLM_FIELDS.items() if field in entry}
        if entry.get("mode") == "embedding":
            prices.pop("output", None)
        limits = [re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", field) for field in entry]
        return {
            **plain(named_write(prices, row.provider)),
            "limit": min((int(found[1]) * 1000 for found in limits if found), default=None),
        }

    def entry(self, row: PriceRow) -> dict[str, Any]:
        """litellm's entry for the model of a row; empty where it has none."""
        model = NAMES.get(row.model, row.model)
        name = LITELLM_NAMES.get((row.provider, model), LITELLM_PREFIXES.get(row.provider, "") + model)
        return dict(self._litellm.get(name) or {})

    def genai(self, row: PriceRow) -> Figures | None:
        day = min(GENAI_STATE, row.valid_to - timedelta(days=1)) if row.valid_to else GENAI_STATE
        if not row.holds_on(day):
            return None
        provider = self._genai[row.provider]
        chain = [provider, *(self._genai[name] for name in provider.get("fallback_model_providers", []))]
        models = [model for each in chain for model in each["models"]]
        model = next((model for model in models if fits(model["match"], NAMES.get(row.model, row.model))), None)
        if model is None:
            return None
        prices: dict[str, Decimal] = {}
        limit: int | None = None
        for field, value in price_on(model["prices"], day).items():
            if field == "requests_kcount":
                # One price of a request for all sizes of search; those of litellm go by the size.
                continue
            tiered = isinstance(value, dict)
            prices[GENAI_FIELDS[field]] = Decimal(repr(value["base"] if tiered else value))
            if tiered:
                limit = min(tier["start"] for tier in value["tiers"])
        return {**plain(named_write(prices, row.provider)), "limit": limit}


def named_write(prices: dict[str, Decimal], provider: str) -> dict[str, Decimal]:
    """The sources' one price of a cache write is that of five minutes at Anthropic, of no known lifetime elsewhere."""
    out = dict(prices)
    if "cache_write" in out:
        out["cache_write_5m" if provider == "anthropic" else "cache_write_unknown"] = out.pop("cache_write")
    return out


def price_on(prices: Any, day: date) -> dict[str, Any]:
    """The last price of a list whose start is not after `day`; prices by the hour are passed over."""
    if isinstance(prices, dict):
        return prices
    starts = [(each.get("constraint") or {}, each["prices"]) for each in prices]
    held = [
        found for when, found in starts if "start_time" not in when and when.get("start_date", "") <= day.isoformat()
    ]
    return dict(held[-1])


def fits(match: dict[str, Any], name: str) -> bool:
    ((how, what),) = match.items()
    if how in {"or", "and"}:
        return (any if how == "or" else all)(fits(each, name) for each in what)
    found: dict[str, bool] = {
        "equals": name == what,
        "starts_with": name.startswith(str(what)),
        "ends_with": name.endswith(str(what)),
        "contains": str(what) in name,
        "regex": how == "regex" and re.search(str(what), name) is not None,
    }
    return found[how]
