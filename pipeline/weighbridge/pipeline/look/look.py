"""The style of a page, and the policy under which a browser shows it: nothing runs, nothing is fetched.

The policy names the style by its digest, so that a page in which somebody changed it shows unstyled.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

_STYLE = Path(__file__).with_name("style.css")


@dataclass(frozen=True, slots=True)
class Look:
    """What goes into the head of a page.

    Attributes:
        style: the content of its one `style` element.
        policy: the content of its Content-Security-Policy.
    """

    style: str
    policy: str


def look(more: str = "") -> Look:
    """The look of a page; `more` is style of its own that goes after the common one."""
    style = _STYLE.read_text(encoding="utf-8") + more
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return Look(style, f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
