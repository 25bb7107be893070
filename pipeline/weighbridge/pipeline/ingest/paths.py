"""Which API is spoken at the path of a URL, by the names dialects have."""

from __future__ import annotations

import re

_APIS = (
    ("count_tokens", re.compile(r"/messages/count_tokens/?$")),
    ("anthropic_messages", re.compile(r"/messages/?$")),
    ("openai_chat", re.compile(r"/chat/completions/?$")),
    ("openai_completions", re.compile(r"/completions/?$")),
    ("openai_responses", re.compile(r"/responses/?$")),
    ("openai_embeddings", re.compile(r"/embeddings/?$")),
)


def api_at(path: object) -> str | None:
    """The API at a path, its query left out; null where none that is known is spoken there."""
    if not isinstance(path, str):
        return None
    bare = path.split("?", 1)[0]
    return next((name for name, pattern in _APIS if pattern.search(bare)), None)
