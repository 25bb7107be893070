"""Recounts with mistral-common: its tokenizer files, and its own rendering of conversations."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from weighbridge.recount.fingerprint import canonical
from weighbridge.recount.recounter import Messages, Recount, RecountError, Tools, added, sound, texts


class MistralRecounter:
    """Counts with a tokenizer file of mistral-common (`tekken.json`, or a SentencePiece model of theirs)."""

    def __init__(self, path: Path | str) -> None:
        """Read a tokenizer file.

        Raises:
            OSError: it cannot be read.
        """
        import mistral_common  # noqa: PLC0415 - a framework, loaded where it is used
        from mistral_common.tokens.tokenizers.mistral import MistralTokenizer  # noqa: PLC0415

        self._whole: Any = MistralTokenizer.from_file(str(path))
        self._plain: Any = self._whole.instruct_tokenizer.tokenizer
        version = str(self._plain.version.value)
        self.tokenizer = fingerprint_of(Path(path))
        # The rendering is code of the package, so its version stands for the template's text.
        release = getattr(mistral_common, "__version__", "")
        self.template: str = hashlib.sha256(f"mistral-common {release} {version}".encode()).hexdigest()

    def _length(self, text: str) -> int:
        try:
            return len(self._plain.encode(text, bos=False, eos=False))
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"the tokenizer refused the text: {type(error).__name__}") from None

    def count(self, text: str) -> Recount:
        """Count a plain text; encoding would add the begin token."""
        return Recount(self._length(text), 0, 1, False, False, self.tokenizer)

    def count_chat(self, messages: Messages, tools: Tools | None = None) -> Recount:
        """Count a conversation as mistral-common renders it, begin token included."""
        from mistral_common.protocol.instruct.request import ChatCompletionRequest  # noqa: PLC0415

        content = sum(self._length(text) for text in texts(sound(messages)))
        try:
            request: Any = ChatCompletionRequest.from_openai(
                [dict(message) for message in messages], tools=None if tools is None else [dict(tool) for tool in tools]
            )
            total = len(self._whole.encode_chat_completion(request).tokens)
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"mistral-common refused the messages: {type(error).__name__}") from None
        return Recount(total, added(total, content, 1), 1, True, True, self.tokenizer, self.template)


def fingerprint_of(path: Path) -> str:
    """Of a tekken file its vocabulary, pattern and special tokens; of a SentencePiece model its bytes."""
    raw = path.read_bytes()
    if path.suffix != ".json":
        return hashlib.sha256(raw).hexdigest()
    content = json.loads(raw)
    return canonical(
        {
            "config": content["config"],
            "vocab": sorted((item["rank"], item["token_bytes"]) for item in content["vocab"]),
            "special": content.get("special_tokens"),
        }
    )
