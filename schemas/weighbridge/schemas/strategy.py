"""One configuration of a sparsity strategy, named by the hash of what it is.

The same class with the same parameters, library, weights and geometry has the same id on every host. Dense is one, too.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import NAME

HEX32: Final = re.compile(r"[0-9a-f]{32}")
# A word of an enumeration: no room for a sentence.
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}")
_NAMES: Final = ("name", "family", "library", "library_version", "model_revision")
_SIZES: Final = ("layers", "query_heads", "kv_heads")

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Strategy:
    """One row of the table `strategy`.

    Attributes:
        name: class or method name.
        family: family of strategies, such as score, position, mask, window, speculation, pruning, merging, dense.
        parameters: numbers and words of enumerations.
        token_events: whether it can produce token events at all (quantisation, weight sparsity and channels cannot).
        library, library_version: what implements it.
        model_revision: revision of the weights.
        layers, query_heads, kv_heads: geometry of the model.
        strategy_id: hash of all of them but `token_events`.

    Raises:
        ContractError: a name or parameter that could hold a text.
    """

    name: str
    family: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    token_events: bool = True
    library: str | None = None
    library_version: str | None = None
    model_revision: str | None = None
    layers: int | None = None
    query_heads: int | None = None
    kv_heads: int | None = None
    strategy_id: str = field(init=False)

    def __post_init__(self) -> None:
        """See that it holds numbers and words only, and name it."""
        for what in _NAMES:
            value = getattr(self, what)
            if value is None and what not in ("name", "family"):
                continue
            if not isinstance(value, str) or not NAME.fullmatch(value):
                raise ContractError(f"the {what} of a strategy must match {NAME.pattern}; give the name alone")
        for what in _SIZES:
            value = getattr(self, what)
            if value is not None and (type(value) is not int or not 0 <= value < 1 << 31):
                raise ContractError(f"the {what} of a strategy is a whole number from 0, or left out")
        for parameter, value in self.parameters.items():
            if not _WORD.fullmatch(parameter) or not _plain(value):
                raise ContractError(
                    "a parameter of a strategy is a number, true, false, nothing or one word of an enumeration "
                    f"({_WORD.pattern}); leave out what is none of these, or give a hash of it"
                )
        object.__setattr__(self, "strategy_id", hashlib.sha256(self._canonical().encode()).hexdigest()[:32])

    def _canonical(self) -> str:
        facts = {what: getattr(self, what) for what in (*_NAMES, *_SIZES)}
        return _json({**facts, "parameters": dict(self.parameters)})

    def columns(self) -> dict[str, Any]:
        """The row by column."""
        facts = {what: getattr(self, what) for what in (*_NAMES, *_SIZES)}
        parameters = _json(dict(self.parameters))
        return {"strategy_id": self.strategy_id, "token_events": self.token_events, "parameters": parameters, **facts}

    @classmethod
    def from_columns(cls, row: Mapping[str, Any]) -> Strategy:
        """The strategy of a row by column.

        Raises:
            ContractError: the row has another id than what it says of itself makes.
        """
        facts = {what: row.get(what) for what in (*_NAMES, *_SIZES)}
        made = cls(parameters=json.loads(row["parameters"]), token_events=row["token_events"], **facts)  # type: ignore[arg-type]
        if made.strategy_id != row["strategy_id"]:
            raise ContractError(
                f"strategy {row['strategy_id']} is not what its columns make, which is {made.strategy_id}; "
                "ingest the segment again"
            )
        return made


def _plain(value: object) -> bool:
    if isinstance(value, str):
        return bool(_WORD.fullmatch(value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
