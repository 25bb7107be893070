"""Recounts with vocabularies in tiktoken's file format, and what OpenAI's chat format adds, as facts with a source."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from weighbridge.recount.fingerprint import canonical, ranks_fingerprint
from weighbridge.recount.recounter import Messages, Recount, RecountError, Tools, added, plain, sound, texts
from weighbridge.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ChatOverhead:
    """What a chat format adds around the contents of messages.

    Attributes:
        per_message: tokens around each message, beside its role.
        per_name: tokens a name adds beside its own.
        per_request: tokens that prime the answer.
        counts_role: whether the role's own tokens are counted.
        source: where it is written down.
    """

    per_message: int
    per_name: int
    per_request: int
    counts_role: bool
    source: str


CHAT_COMPLETIONS: Final = ChatOverhead(
    3, 1, 3, True, "OpenAI cookbook, How to count tokens with tiktoken, num_tokens_from_messages"
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A public vocabulary: its pattern, its special tokens and the SHA-256 of its file.

    Source: tiktoken 0.14.0, tiktoken_ext/openai_public.py (MIT).
    """

    name: str
    pattern: str
    sha256: str
    special: Mapping[str, int] = field(default_factory=dict)


CL100K_BASE: Final = Encoding(
    "cl100k_base",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
    r"""|\s+(?!\S)|\s""",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    {
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
)
O200K_BASE: Final = Encoding(
    "o200k_base",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
)
ENCODINGS: Final = {encoding.name: encoding for encoding in (CL100K_BASE, O200K_BASE)}


class TiktokenRecounter:
    """Counts with a vocabulary file; the contents of messages are ordinary text, special tokens in them are not."""

    def __init__(self, path: Path | str, encoding: Encoding | str, *, overhead: ChatOverhead | None = None) -> None:
        """Read a vocabulary.

        Args:
            path: a file of lines `base64(token) rank`.
            encoding: one of `ENCODINGS` by name, or its facts; an empty `sha256` is not checked.
            overhead: what the chat format adds; None: conversations are counted without a template.

        Raises:
            ConfigError: an unknown name, a file that is no such vocabulary, or not the one the facts name.
        """
        import tiktoken  # noqa: PLC0415 - a framework, loaded where it is used

        if isinstance(encoding, str):
            if encoding not in ENCODINGS:
                raise ConfigError(f"encoding {encoding!r} is not known; known are {', '.join(sorted(ENCODINGS))}")
            encoding = ENCODINGS[encoding]
        ranks = read_ranks(Path(path), encoding.sha256)
        self._encoding: Any = tiktoken.Encoding(
            encoding.name, pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens=dict(encoding.special)
        )
        self._overhead = overhead
        self.tokenizer = ranks_fingerprint(ranks, encoding.pattern, encoding.special)
        self.template = (
            None
            if overhead is None
            else canonical([overhead.per_message, overhead.per_name, overhead.per_request, overhead.counts_role])
        )

    def _length(self, text: str) -> int:
        try:
            return len(self._encoding.encode_ordinary(text))
        except Exception as error:  # noqa: BLE001 - its text may hold text of the prompt
            raise RecountError(f"the tokenizer refused the text: {type(error).__name__}") from None

    def count(self, text: str) -> Recount:
        """Count a plain text."""
        return Recount(self._length(text), 0, 0, False, False, self.tokenizer)

    def count_chat(self, messages: Messages, tools: Tools | None = None) -> Recount:
        """Count a conversation.

        How tools, calls and media are rendered is not published, so with any of them, or without an overhead, only the
        contents are counted and the template's share is unknown.
        """
        content = sum(self._length(text) for text in texts(sound(messages)))
        overhead = self._overhead
        if overhead is None or tools or not plain(messages):
            return Recount(content, None, 0, False, False, self.tokenizer)
        total = content + overhead.per_request
        for message in messages:
            total += overhead.per_message
            if overhead.counts_role:
                total += self._length(str(message.get("role", "")))
            if message.get("name"):
                total += overhead.per_name + self._length(str(message["name"]))
        return Recount(total, added(total, content, 0), 0, True, False, self.tokenizer, self.template)


def read_ranks(path: Path, sha256: str = "") -> dict[bytes, int]:
    """The ranks of a vocabulary file.

    Raises:
        ConfigError: the file is no such vocabulary, or its SHA-256 is another.
    """
    raw = path.read_bytes()
    if sha256 and hashlib.sha256(raw).hexdigest() != sha256:
        raise ConfigError(f"{path.name} is not the vocabulary that was named: its SHA-256 is another")
    ranks: dict[bytes, int] = {}
    try:
        for line in raw.splitlines():
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except (ValueError, binascii.Error):
        raise ConfigError(f"{path.name} is no vocabulary of lines `base64(token) rank`") from None
    return ranks
