"""What a call of `generate()` was given: its prompts, their lengths, and the settings that were in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.adapters._generate_call import Call
from weighbridge.capture.adapters._generation import Asked
from weighbridge.capture.context import Parameters

_SETTINGS: Final = (
    "eos_token_id", "pad_token_id", "max_length", "max_new_tokens", "min_new_tokens", "num_beams",
    "num_return_sequences", "use_cache", "do_sample", "temperature", "top_p", "top_k", "length_penalty",
    "stop_strings", "guidance_scale", "penalty_alpha", "dola_layers", "token_healing",
)  # fmt: skip
_PROMPTS: Final = ("inputs", "input_ids", "inputs_embeds", "attention_mask")


def tensor(args: Sequence[Any], kwargs: dict[str, Any], *names: str) -> Any:
    """The first argument of these names that is a tensor; `inputs` may stand first without a name."""
    for name in names:
        value = args[0] if name == "inputs" and args else kwargs.get(name)
        if hasattr(value, "shape"):
            return value
    return None


def prompts(args: Sequence[Any], kwargs: dict[str, Any]) -> int | None:
    """How many prompts the call has, None where no argument shows it."""
    first = tensor(args, kwargs, *_PROMPTS)
    return None if first is None else int(first.shape[0])


def fresh(kwargs: dict[str, Any]) -> bool:
    """Whether the call starts without anything computed by earlier calls.

    How many tokens a cache stands for cannot be told from its length once something was evicted from it.
    """
    given = [kwargs[name] for name in ("cache", "past_key_values") if kwargs.get(name) is not None]
    empty = all(hasattr(cache, "get_seq_length") and int(cache.get_seq_length()) == 0 for cache in given)
    return empty and kwargs.get("encoder_outputs") is None


class Arguments:
    """The arguments of one call, read when it is over."""

    def __init__(self, model: Any, call: Call, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.model = model
        self.call = call
        self.kwargs = kwargs
        self.ids = tensor(args, kwargs, "inputs", "input_ids")
        self.embeds = tensor((), kwargs, "inputs_embeds")
        self.mask = tensor((), kwargs, "attention_mask")
        self.both_ways = bool(getattr(model.config, "is_encoder_decoder", False))
        self.prompts = prompts(args, kwargs)
        self.custom = (args[10] if len(args) > 10 else kwargs.get("custom_generate")) is not None
        self._given = args[1] if len(args) > 1 else kwargs.get("generation_config")
        self._criteria = args[3] if len(args) > 3 else kwargs.get("stopping_criteria")
        self._synced = bool(args[5] if len(args) > 5 else kwargs.get("synced_gpus"))
        self.settings = self._settings()

    @property
    def beams(self) -> int:
        """Beams of a beam search, 1 without one."""
        return self.settings["num_beams"] or 1

    @property
    def choices(self) -> int:
        """Sequences that were asked for per prompt."""
        return self.settings["num_return_sequences"] or 1

    def _settings(self) -> dict[str, Any]:
        """As they were prepared, else as the call, its configuration or the model's gives them."""
        if self.call.config is not None:
            prepared = vars(self.call.config)
            return {name: prepared.get(name) for name in _SETTINGS}
        found: dict[str, Any] = dict.fromkeys(_SETTINGS)
        for given in (vars(self.model.generation_config), vars(self._given) if self._given else {}, self.kwargs):
            found |= {name: given[name] for name in _SETTINGS if given.get(name) is not None}
        return found

    # -- prompts -------------------------------------------------------------------------------------------------------

    def lengths(self, count: int) -> list[int]:
        """Tokens of each of `count` prompts: by the attention mask, else by the rule `generate()` uses without one."""
        if self.kwargs.get("decoder_input_ids") is not None:
            # Part of what went in stands on the decoder's side, behind its start token or not.
            return [UNKNOWN] * count
        if self.mask is not None and len(self.mask.shape) == 2 and self.mask.shape[0] == count:
            return [int(value) for value in self.mask.sum(1).tolist()]
        if self.embeds is not None and len(self.embeds.shape) == 3:
            return [int(self.embeds.shape[1])] * count
        if self.ids is None or len(self.ids.shape) != 2:
            return [self._bare()] * count
        width, pad = self.ids.shape[1], self.settings["pad_token_id"]
        if self.both_ways or pad is None or pad in self._ends():
            return [width] * count
        return [int(value) for value in (self.ids != pad).sum(1).tolist()]

    def _bare(self) -> int:
        """Tokens of a prompt that no argument shows: the start token, unless images, sound or the like were given."""
        shown = any(hasattr(value, "shape") for value in self.kwargs.values())
        start = self.call.start
        return UNKNOWN if start is None or shown or self.ids is not None or self.both_ways else start

    def prompt(self, index: int, length: int) -> Any:
        """The ids of a prompt without its padding, wherever that stands; None where they are not known."""
        if self.ids is None or self.embeds is not None or length < 0 or len(self.ids.shape) != 2:
            return None
        row = self.ids[index]
        if self.mask is not None and self.mask.shape == self.ids.shape:
            return row[self.mask[index] != 0]
        return row if length == row.shape[0] else row[row != self.settings["pad_token_id"]]

    def width(self) -> int | None:
        """Columns of the prompts, padding included; None where no argument shows them."""
        first = self.embeds if self.embeds is not None else self.ids
        return None if first is None else int(first.shape[1])

    # -- the result ----------------------------------------------------------------------------------------------------

    def start(self, sequences: Any, *, plain: bool) -> int | None:
        """Columns of the result that were not generated; None where that is not certain.

        Args:
            sequences: what the call returned.
            plain: its `generate()` is the framework's own and returns what it generated as it is.
        """
        if not hasattr(sequences, "shape") or len(sequences.shape) != 2 or self.call.prepared > 1:
            return None
        if self.call.start is not None and plain:
            return self.call.start if sequences.shape[1] >= self.call.start else None
        if self.both_ways or self.ids is None or len(self.ids.shape) != 2:
            return None
        (count, width), (returned, whole) = self.ids.shape, sequences.shape
        if whole < width or not count or returned % count:
            return None
        again = self.ids if returned == count else self.ids.repeat_interleave(returned // count, 0)
        return width if bool((sequences[:, :width] == again.to(sequences.device)).all()) else None

    def asked(self, start: int | None) -> Asked:
        """What reading the result needs to know of the settings."""
        wanted = self.settings
        limit = wanted["max_length"]
        if self.call.config is None and wanted["max_new_tokens"] is not None and start is not None:
            limit = start + wanted["max_new_tokens"]
        return Asked(
            eos=self._ends(),
            pad=self._pad(),
            limit=limit,
            beams=self.beams,
            cached=wanted["use_cache"] is not False,
            stop=self._stop_check(),
            foreign=bool(self._criteria),
            odd=self._odd(),
        )

    def _ends(self) -> tuple[int, ...]:
        eos = self.settings["eos_token_id"]
        return () if eos is None else tuple(map(int, eos)) if isinstance(eos, (list, tuple)) else (int(eos),)

    def _pad(self) -> int | None:
        """The token behind a row that ended before others: the padding token, without one the first end token.

        A beam search takes the end token in place of a padding token 0 too, and -1 where there is no end token.
        """
        pad, ends = self.settings["pad_token_id"], self._ends()
        if self.beams > 1:
            return (int(pad) if pad else ends[0]) if ends else -1
        return (ends[0] if ends else None) if pad is None else int(pad)

    def _stop_check(self) -> Any:
        strings, tokenizer = self.settings["stop_strings"], self.kwargs.get("tokenizer")
        if not strings or tokenizer is None:
            return None
        from transformers import StopStringCriteria  # noqa: PLC0415 - the host has loaded it

        criteria = StopStringCriteria(tokenizer=tokenizer, stop_strings=strings)
        return lambda ids: criteria(ids, None)

    def _odd(self) -> bool:
        """Whether forward passes are run that no formula covers: a cache that was filled before, guidance, others."""
        wanted = self.settings
        return (
            self.both_ways
            or self.custom
            or self._synced
            or not self.call.fresh
            or wanted["guidance_scale"] not in (None, 1, 1.0)
            or any(wanted[name] for name in ("penalty_alpha", "dola_layers", "token_healing"))
        )

    def parameters(self, start: int | None) -> Parameters:
        """The generation parameters."""
        wanted = self.settings
        most, sampled = wanted["max_new_tokens"], wanted["do_sample"]
        if most is None and wanted["max_length"] is not None and start is not None:
            most = wanted["max_length"] - start
        strings = wanted["stop_strings"]
        return Parameters(
            max_tokens=most,
            min_tokens=wanted["min_new_tokens"],
            temperature=wanted["temperature"] if sampled else None,
            top_p=wanted["top_p"] if sampled else None,
            top_k=wanted["top_k"] if sampled else None,
            n=self.choices,
            beams=self.beams,
            length_penalty=wanted["length_penalty"] if self.beams > 1 else None,
            stop_strings=0 if not strings else 1 if isinstance(strings, str) else len(strings),
        )
