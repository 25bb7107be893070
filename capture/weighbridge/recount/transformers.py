"""Recounts with a tokenizer of `transformers`, or with a bare `tokenizer.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weighbridge.recount.fingerprint import template_fingerprint, tokenizer_json_fingerprint
from weighbridge.recount.recounter import Messages, Recount, RecountError, Tools, added, sound, texts
from weighbridge.schemas.errors import ConfigError


class TransformersRecounter:
    """Counts with a copy of the tokenizer, so that neither the host's truncation and padding nor its threads matter."""

    def __init__(self, tokenizer: Any) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: a fast tokenizer of `transformers` (5.x: any), whose chat template is used, or a path of a
                `tokenizer.json`, which carries none.

        Raises:
            ConfigError: neither of the two.
        """
        from tokenizers import Tokenizer  # noqa: PLC0415 - a framework, loaded where it is used

        if isinstance(tokenizer, (str, Path)):
            serialised = Path(tokenizer).read_text(encoding="utf-8")
            self._renders: Any = None
        else:
            backend: Any = getattr(tokenizer, "backend_tokenizer", None)
            if not hasattr(backend, "to_str"):
                raise ConfigError(
                    f"{type(tokenizer).__name__} has no `tokenizers` backend; pass a fast tokenizer or a tokenizer.json"
                )
            serialised = backend.to_str()
            self._renders = tokenizer
        self._own = Tokenizer.from_str(serialised)
        self._own.no_truncation()
        self._own.no_padding()
        self.tokenizer = tokenizer_json_fingerprint(json.loads(serialised))
        template = getattr(self._renders, "chat_template", None)
        self.template = template_fingerprint(template) if isinstance(template, str) else None
        self._before, self._after = self._special()
        self._ordinary: Any = None

    def _ids(self, text: str, *, special: bool = False) -> list[int]:
        try:
            ids: list[int] = self._own.encode(text, add_special_tokens=special).ids
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"the tokenizer refused the text: {type(error).__name__}") from None
        return ids

    def _special(self) -> tuple[list[int], list[int]]:
        """The ids encoding puts before and after a text."""
        bare, dressed = self._ids("a"), self._ids("a", special=True)
        for at in range(len(dressed) - len(bare) + 1):
            if dressed[at : at + len(bare)] == bare:
                return dressed[:at], dressed[at + len(bare) :]
        return [], []

    def count(self, text: str) -> Recount:
        """Count a plain text; `special` says what encoding would add."""
        special = len(self._before) + len(self._after)
        return Recount(len(self._ids(text)), 0, special, False, False, self.tokenizer)

    def count_ordinary(self, text: str) -> Recount:
        """Count a plain text in which what looks like a special token is text like any other."""
        if self._ordinary is None:
            self._ordinary = type(self._own).from_str(self._own.to_str())
            self._ordinary.encode_special_tokens = True
        try:
            tokens = len(self._ordinary.encode(text, add_special_tokens=False).ids)
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"the tokenizer refused the text: {type(error).__name__}") from None
        return Recount(tokens, 0, len(self._before) + len(self._after), False, False, self.tokenizer)

    def count_chat(self, messages: Messages, tools: Tools | None = None) -> Recount:
        """Count the rendered conversation, generation prompt included.

        The rendered text already holds what the template puts at its begin, so nothing is added on encoding (a second
        begin token otherwise). Without a template only the contents are counted.
        """
        content = sum(len(self._ids(text)) for text in texts(sound(messages)))
        special = len(self._before) + len(self._after)
        if self.template is None:
            return Recount(content, None, special, False, False, self.tokenizer)
        ids = self._ids(self._rendered(messages, tools))
        contained = special > 0 and self._contains(ids)
        template = added(len(ids), content, special if contained else 0)
        return Recount(len(ids), template, special, True, contained, self.tokenizer, self.template)

    def _contains(self, ids: Sequence[int]) -> bool:
        before, after = len(self._before), len(self._after)
        return list(ids[:before]) == self._before and list(ids[len(ids) - after :]) == self._after

    def _rendered(self, messages: Messages, tools: Tools | None) -> str:
        try:
            return str(
                self._renders.apply_chat_template(
                    [dict(message) for message in messages],
                    tools=None if tools is None else list(tools),
                    tokenize=False,
                    add_generation_prompt=True,
                )
            )
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"the chat template refused the messages: {type(error).__name__}") from None
