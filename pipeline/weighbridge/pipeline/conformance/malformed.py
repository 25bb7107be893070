"""What is wrong with a case itself, and not with what was read from it."""

from __future__ import annotations


class MalformedCaseError(ValueError):
    """A case that cannot be run as written. The message names the field and what is expected there."""
