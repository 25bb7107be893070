"""What the request path reads of a recorder, and which file is the present one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.journal import NoJournal
from weighbridge.capture.mapped_journal import MappedJournal

if TYPE_CHECKING:
    from weighbridge.capture.content import Content

Journal = MappedJournal | FileJournal | NoJournal


class Present:
    """In slots, where a cold cache has to fetch one line and not five.

    Attributes:
        content: where token ids are handed over.
        journal: the file that records go to now.
        serials: numbers for fresh keys.
        tail: the random half of the keys of this process.
    """

    __slots__ = ("__weakref__", "content", "journal", "serials", "tail")

    content: Content
    journal: Journal
    serials: Iterator[int]
    tail: int
