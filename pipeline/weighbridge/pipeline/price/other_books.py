"""Prices of other open books, litellm's and genai-prices', as rows of a price file; and all of theirs that is left out.

A float price is taken for the decimal it is short for: that of at most 12 significant digits, if no more than one unit
in the last place of the float is between them. 1.25e-06 is 1.25 a million; 0.08333333333333334 is short for nothing,
and is left out. Whatever our format has no word for, or our reading of theirs none, is listed with its reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from weighbridge.pipeline.price import keys
from weighbridge.schemas.errors import ConfigError

DIGITS = 12
_MILLION = Decimal(10) ** 6
_LITELLM = {
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
_GENAI = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "input_audio_mtok": "audio_in",
    "output_audio_mtok": "audio_out",
    "cache_audio_read_mtok": "cache_read_audio",
}
_ENDS = {"": "", "_flex": 'service_tier = "flex"', "_priority": 'service_tier = "priority"', "_batches": "batch = true"}
_FIELD = re.compile(rf"({'|'.join(_LITELLM)})(?:_above_(\d+)k_tokens)?(_flex|_priority|_batches)?")
# What an entry says that is no price.
_NO_PRICE = re.compile(r".*(cost|price).*")


@dataclass(slots=True)
class OtherBook:
    """What became of another book.

    Attributes:
        rows: provider -> the rows of its price file, as TOML.
        left_out: model, what of it, and why.
        named: provider and model of each row.
    """

    rows: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)
    named: set[tuple[str, str]] = field(default_factory=set)

    def toml(self, provider: str, source: str) -> str:
        """The price file of one provider."""
        head = f'format = 1\nprovider = "{provider}"\ncurrency = "USD"\nsource = {json.dumps(source)}\n'
        return "\n".join([head, *self.rows[provider]])


def short_decimal(value: float | int) -> Decimal | None:
    """The decimal a float is short for; null where there is none of at most 12 significant digits."""
    if isinstance(value, bool) or not math.isfinite(value) or value < 0:
        return None
    near = Decimal(f"{value:.{DIGITS}g}")
    return near if abs(float(near) - value) <= math.ulp(value) else None


def litellm(path: Path) -> OtherBook:
    """litellm's `model_prices_and_context_window.json`.

    Raises:
        ConfigError: the file is none.
    """
    out = OtherBook()
    for name, entry in _read(path).items():
        if name == "sample_spec" or not isinstance(entry, dict):
            continue
        provider = str(entry.get("litellm_provider", "unknown")).split("-")[0]
        tables: dict[tuple[str, int], dict[str, Decimal]] = {}
        for key, value in entry.items():
            found = _FIELD.fullmatch(key)
            if found is None:
                if _NO_PRICE.fullmatch(key) and value:
                    out.left_out.append((name, key, "no key of a price file says this"))
                continue
            price = _price(out, name, key, value, 1)
            if price is not None:
                own = _write_key(_LITELLM[found[1]], provider)
                tables.setdefault((found[3] or "", int(found[2] or 0) * 1000), {})[own] = price
        _row(out, provider, name.removeprefix(f"{entry.get('litellm_provider')}/"), name, tables)
    return out


def genai_prices(path: Path) -> OtherBook:
    """genai-prices' `data.json`.

    Raises:
        ConfigError: the file is none.
    """
    out = OtherBook()
    for provider in _list(path):
        for model in provider["models"]:
            name, prices = f"{provider['id']}/{model['id']}", model.get("prices")
            if isinstance(prices, list):
                for dated in prices:
                    if dated.get("constraint"):
                        out.left_out.append((name, "constraint", "prices by date or hour are written by hand"))
                prices = next((each["prices"] for each in prices if not each.get("constraint")), {})
            tables: dict[tuple[str, int], dict[str, Decimal]] = {}
            for key, value in (prices or {}).items():
                if key not in _GENAI:
                    out.left_out.append((name, key, "no key of a price file says this"))
                    continue
                own = _write_key(_GENAI[key], provider["id"])
                tiers = value["tiers"] if isinstance(value, dict) else []
                base = value["base"] if isinstance(value, dict) else value
                for above, told in [(0, base), *((tier["start"], tier["price"]) for tier in tiers)]:
                    if (price := _price(out, name, key, told, 10**6)) is not None:
                        tables.setdefault(("", int(above)), {})[own] = price
            _row(out, provider["id"], model["id"], name, tables)
    return out


def _price(out: OtherBook, name: str, key: str, value: object, units: int) -> Decimal | None:
    """The price per million, or null and why."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        out.left_out.append((name, key, "is no number"))
        return None
    short = short_decimal(value)
    if short is None:
        out.left_out.append((name, key, f"is no decimal of at most {DIGITS} digits, or below zero"))
        return None
    try:
        return keys.price(format(keys.plain(short * _MILLION / units), "f"))
    except ValueError as error:
        out.left_out.append((name, key, str(error)))
        return None


def _write_key(key: str, provider: str) -> str:
    """Their one price of a cache write is that of five minutes at Anthropic, and of no known lifetime elsewhere."""
    if key != "cache_write":
        return key
    return "cache_write_5m" if provider == "anthropic" else "cache_write_unknown"


def _row(
    out: OtherBook, provider: str, model: str, name: str, tables: Mapping[tuple[str, int], Mapping[str, Decimal]]
) -> None:
    base = tables.get(("", 0))
    if not base:
        out.left_out.append((name, "", "it has no price per token"))
        return
    if (provider, model) in out.named:
        out.left_out.append((name, "", "an entry before it is for the same model"))
        return
    out.named.add((provider, model))
    lines = ["[[rows]]", f"models = [{json.dumps(model)}]", f"prices = {_table(base)}"]
    lines += [f"above = {above}" for above in _above(tables, "")]
    variants = []
    for end, when in _ENDS.items():
        own = tables.get((end, 0))
        if not end or not own:
            continue
        tiers = "".join(f", above = {above}" for above in _above(tables, end))
        variants.append(f"  {{ when = {{ {when} }}, prices = {_table(own)}{tiers} }},")
    if variants:
        lines += ["variants = [", *variants, "]"]
    out.rows.setdefault(provider, []).append("\n".join(lines) + "\n")


def _above(tables: Mapping[tuple[str, int], Mapping[str, Decimal]], end: str) -> Iterator[str]:
    tiers = sorted((above, prices) for (own, above), prices in tables.items() if own == end and above)
    if tiers:
        # Both books mean all tokens of a request that is longer than this.
        told = (f'{{ input_tokens = {above}, rule = "cliff", prices = {_table(prices)} }}' for above, prices in tiers)
        yield f"[{', '.join(told)}]"


def _table(prices: Mapping[str, Decimal]) -> str:
    return "{ " + ", ".join(f'{key} = "{price:f}"' for key, price in sorted(prices.items())) + " }"


def _read(path: Path) -> dict[str, Any]:
    content = _json(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is no book of litellm, which is one object of models; name that file")
    return content


def _list(path: Path) -> list[dict[str, Any]]:
    content = _json(path)
    if not isinstance(content, list) or not all(isinstance(each, dict) and "models" in each for each in content):
        raise ConfigError(f"{path} is no book of genai-prices, which is a list of providers; name its data.json")
    return content


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON; name the file as it was published, unpacked") from error
