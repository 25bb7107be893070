"""The recorder: one per process. It binds what stays the same, hands out attempts, and writes each with one store.

    recorder = Recorder.start(spool, installation="gateway-1", key=key)
    chat = recorder.bind(Context(provider="openai", api="openai_chat", tenant="acme", task="chat"))
    attempt = chat.begin()
    ...
    attempt.finish(outcome, counts, usage=body["usage"])      # True: it survives a SIGKILL from here on

The request path takes no lock, hashes nothing, writes no file and never raises. What it cannot keep is counted by
reason and written as a gap record by the keeper, a thread that also makes pages writable ahead, adds their checksums,
prepares the next file and reads the policy again.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from weighbridge.capture import policy
from weighbridge.capture.binding import Binding
from weighbridge.capture.bindings import Bindings
from weighbridge.capture.content import Content, opening
from weighbridge.capture.content_files import ContentFiles
from weighbridge.capture.dictionary import Dictionary, Entry
from weighbridge.capture.guard import Guard
from weighbridge.capture.guard import report as report_error
from weighbridge.capture.journal import JournalHeader, NoJournal
from weighbridge.capture.journals import Journals
from weighbridge.capture.keeper import Keeper
from weighbridge.capture.keys import KeyProvider
from weighbridge.capture.limits import Limits
from weighbridge.capture.living import closed, living
from weighbridge.capture.losses import Losses
from weighbridge.capture.rendering import Renderer
from weighbridge.capture.replicated import facts_of
from weighbridge.capture.traces import Traces
from weighbridge.schemas.enumerations import GapReason
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, key_id
from weighbridge.schemas.parts import Part
from weighbridge.schemas.version import SCHEMA_VERSION

__all__ = ["Limits", "Recorder"]

_SIGN: Final = -(1 << 63)


class Recorder(Bindings):
    """The capture agent of one process. Use `Recorder.start`.

    Attributes:
        chores: work of adapters off the request path, such as recounts: called by the keeper, and with True at the end.
        part: place of this process in a model that runs in several; None where it runs in one.
        follows: another process tells the counts: of attempts nothing but traces is written here.
        hooks: adapters that were installed. Where nothing ever runs through any of them, that is a gap at the end.
    """

    def __init__(
        self,
        spool: Path,
        *,
        installation: str,
        key: bytes,
        limits: Limits,
        policy_file: Path | None,
        keys: KeyProvider | None,
        facts: Mapping[str, str | int | None],
        part: Part | None = None,
    ) -> None:
        super().__init__()
        self.part = part
        self.follows = part is not None and not part.counts
        self._calls = itertools.count()
        self.spool = spool
        self.installation = installation
        self.key = key
        self.limits = limits
        self._facts = dict(facts)
        self._keys = keys
        self.policy = policy.Policy()
        self._policy_file = None if policy_file is None else policy.PolicyFile(policy_file, key)
        self._bindings: weakref.WeakSet[Binding] = weakref.WeakSet()
        self._closing = False
        self.chores: list[Callable[[bool], None]] = []
        self.dictionary = Dictionary(self._write_entry)
        self.renderer = Renderer(self.dictionary, key)
        self._reset()

    def _reset(self) -> None:
        """A process of its own: fresh random tail, fresh files, nothing inherited."""
        self.pid = os.getpid()
        self.hooks: set[str] = set()
        self.tail = _SIGN | int.from_bytes(os.urandom(8), "big") >> 2
        self.serials = itertools.count(1)
        self.process = os.urandom(8).hex()
        self.losses = Losses()
        self.journal = NoJournal(GapReason.SHUTDOWN)
        self.journals = Journals(
            self, self.spool, self.limits, self._header, self.dictionary, self.losses, self._wake_keeper
        )
        self.content = Content(self._keys, self.losses, buffer_bytes=self.limits.buffer_bytes)
        self.traces = Traces(self._keys, self.losses, self.content, self.put_slot)
        self.content_files = ContentFiles(
            self.spool, self.installation, self.limits, self._opening, self.journals.quota
        )
        self.keeper = Keeper(self)

    def _header(self) -> JournalHeader:
        facts = {**self._facts, "tail": self.tail, "policy": self.policy.digest, "process": self.process}
        return JournalHeader(self.installation, facts)

    def _opening(self) -> bytes:
        return opening(self.installation, self.process, key_id(self.key))

    def _wake_keeper(self) -> None:
        self.keeper.wake()

    def _write_entry(self, entry: Entry, number: int, payload: bytes) -> None:
        self.journals.write_entry(entry, number, payload)

    @classmethod
    def start(
        cls,
        spool: Path | str,
        *,
        installation: str,
        key: bytes,
        limits: Limits | None = None,
        policy_file: Path | str | None = None,
        keys: KeyProvider | None = None,
        role: str | None = None,
        rank: int | None = None,
        part: Part | None = None,
    ) -> Recorder:
        """Open the spool and start the keeper.

        Args:
            spool: a folder of the agent's own; made 0700 if it is not there.
            installation: the name that becomes the `source` of its rows.
            key: the installation's pseudonym key, 16 to 64 bytes.
            keys: who gives the keys token ids are encrypted with; without one ids are counted as lost under `no_key`.
            policy_file: see `policy`; without one every attempt is captured at level 1.
            role, rank: what this process is to others, such as `engine` or `server`.
            part: its place in a model that runs in several processes; it is the role and rank then.

        Raises:
            ConfigError: a name or key that cannot be used. A spool that cannot be written is no error: losses are
                counted until it can.
        """
        if not NAME.fullmatch(installation):
            raise ConfigError(f"installation {installation!r} must match {NAME.pattern}")
        if not 16 <= len(key) <= 64:
            raise ConfigError(f"the pseudonym key has {len(key)} bytes; 16 to 64 are allowed, 32 are usual")
        recorder = cls(
            Path(spool),
            installation=installation if part is None else part.source(installation),
            key=key,
            limits=limits or Limits(),
            policy_file=None if policy_file is None else Path(policy_file),
            keys=keys,
            facts={
                "role": role,
                "rank": rank,
                "key_id": key_id(key),
                "schema_version": SCHEMA_VERSION,
                **facts_of(part),
            },
            part=part,
        )
        recorder.read_policy()
        recorder.open()
        return recorder

    def open(self) -> None:
        """Open the first journal and start the keeper."""
        with self.dictionary.lock:
            self.journals.open()
            self.keeper = Keeper(self)
            try:
                self.keeper.start()
            except RuntimeError as error:  # no thread to be had: files then change in the request that fills them
                report_error(error, "keeper")
        living.add(self)

    # -- end -----------------------------------------------------------------------------------------------------------

    def do_chores(self, *, last: bool = False) -> None:
        """What adapters left for the keeper (keeper and close only)."""
        for chore in list(self.chores):
            with Guard("chore"):
                chore(last)

    def close(self) -> None:
        """Write what waits, close the files. Later finishes are counted as lost through shutdown.

        What was lost since is written by a further call, or when the interpreter ends.
        """
        with self.dictionary.lock:
            if os.getpid() != self.pid:
                return
            first, self._closing = not self._closing, True
        if first:
            self.keeper.stop()
            self.do_chores(last=True)
            if self.hooks and not _handed_out(self.serials):
                self.losses.count(GapReason.NEVER_CALLED, attempts=0)
            self.drain_content(all_=True)
            self.content_files.close()
            self.losses.counted = self._outlive
            self.journals.close()
        with Guard("close"):
            self.journals.write_late_losses()
        closed.add(self)
        if not self.losses.snapshot():
            living.discard(self)

    def _outlive(self) -> None:
        """Live until what was lost after the close is written, though nobody but an attempt may know us any more."""
        living.add(self)

    def after_fork(self) -> None:
        """In a forked child: forget the parent's files and open fresh ones."""
        self.journals.forget()
        self.content_files.forget()
        self.dictionary.lock = threading.RLock()
        self._tally = threading.RLock()
        self._reset()
        if self._closing:
            self.journals.closed = True
            self.losses.counted = self._outlive
        else:
            self.journal = NoJournal(GapReason.FORK)
            self.journals.unopened = True


def _handed_out(serials: Iterator[int]) -> bool:
    """Whether an attempt was ever begun: its text is the only look at a counter that takes nothing of it."""
    return repr(serials) != "count(1)"
