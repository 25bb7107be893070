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

import atexit
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge.capture import guard, layout, policy
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.content import Content, Run, opening
from weighbridge.capture.content_files import ContentFiles
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.dictionary import Dictionary, DictionaryFullError, Entry
from weighbridge.capture.guard import Guard, raises
from weighbridge.capture.guard import report as report_error
from weighbridge.capture.journal import JournalHeader, JournalUnavailableError, NoJournal
from weighbridge.capture.journals import Journals
from weighbridge.capture.keeper import Keeper
from weighbridge.capture.keys import KeyProvider
from weighbridge.capture.limits import Limits
from weighbridge.capture.losses import Losses
from weighbridge.capture.records import Records
from weighbridge.capture.rendering import Renderer
from weighbridge.capture.replicated import PartBinding, facts_of, placed
from weighbridge.capture.traces import Events, Traces
from weighbridge.schemas.enumerations import GapReason, RunStream
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, key_id
from weighbridge.schemas.parts import Part
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.version import SCHEMA_VERSION

__all__ = ["Limits", "Recorder"]

_SIGN: Final = -(1 << 63)


class Recorder(Records):
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
        _living.add(self)

    # -- binding -------------------------------------------------------------------------------------------------------

    def bind(
        self,
        context: Context,
        *,
        counts: Sequence[str] = (),
        parameters: Parameters | None = None,
        root: str = "usage",
    ) -> Binding:
        """Bind what stays the same for many attempts.

        Args:
            context: provenance, tenant, task, route and strategy; names become pseudonyms here, once.
            counts: names (of `layout.COUNTS` and `layout.TIMES`) of the integers `finish` will get.
            parameters: generation parameters that stay the same.
            root: where the usage object stands in its answer, such as `usage` or `usageMetadata`.

        Raises:
            ConfigError: a name that is not allowed, or a count that does not exist.
        """
        unknown = [name for name in counts if name not in layout.COUNTS and name not in layout.TIMES]
        if unknown:
            raise ConfigError(f"unknown count {unknown[0]!r}; known are {', '.join((*layout.COUNTS, *layout.TIMES))}")
        entry = context.entry(self.key)
        facts = (str(entry["tenant"]), str(entry["route"]), context.strategy_id)
        # At once, so that no new file comes in between and leaves out what no binding seems to use.
        with self.dictionary.lock:
            number = self.number(Entry.CONTEXT, entry, 0)
            values = -1 if parameters is None else self.parameters(parameters)
            made = Binding if self.part is None else PartBinding
            binding = made(self, number, counts, facts, root, values, context.subject_bucket)
            if isinstance(binding, PartBinding) and self.part is not None:
                binding.of(self.part, self._calls)
            self._decide(binding)
            self._bindings.add(binding)
            self.dictionary.hold(binding)
        return binding

    def number(self, entry: Entry, content: Mapping[str, object], otherwise: int) -> int:
        """The number of an entry, or `otherwise` where there is no room for it: no request may fail for that."""
        try:
            return self.dictionary.number(entry, content)
        except (DictionaryFullError, JournalUnavailableError) as error:
            report_error(error, "dictionary")
            return otherwise

    def parameters(self, parameters: Parameters) -> int:
        """The dictionary number of generation parameters that differ from call to call."""
        return self.number(Entry.PARAMETERS, parameters.entry(), -1)

    def scope_context(self, context: int, name: str) -> int:
        """The dictionary number of a context with the name of a stage added."""
        try:
            return self.dictionary.derive(context, {"scope": name})
        except (DictionaryFullError, JournalUnavailableError, KeyError) as error:
            report_error(error, "dictionary")
            return context

    # -- policy --------------------------------------------------------------------------------------------------------

    def _decide(self, binding: Binding) -> None:
        decision = self.policy.decide(*binding.facts, policy.today())
        binding.decision = decision if decision.threshold else None

    def read_policy(self) -> None:
        """Read the policy file if its content changed. A file that cannot be read leaves the policy as it is."""
        if self._policy_file is None:
            return
        try:
            changed = self._policy_file.changed()
            if changed is not None:
                self.policy = changed
                self.journals.rename_policy()
        except (OSError, ConfigError) as error:
            report_error(error, "policy")
        with self.dictionary.lock:
            bindings = list(self._bindings)
        for binding in bindings:
            self._decide(binding)

    # -- content -------------------------------------------------------------------------------------------------------

    def offer_ids(self, attempt: Attempt, runs: Sequence[Run]) -> int:
        """Hand over the token ids of one attempt by reference (level 2 and up); how many ids will follow, -1 none."""
        if self.follows:
            return -1
        return self.content.offer(attempt.content_place(), runs)

    def offer_pair(self, attempt: Attempt, prompt: object, output: object) -> int:
        """`Attempt.offer`, for whatever does not fit its fast path. Never raises."""
        ids = ((RunStream.PROMPT, prompt), (RunStream.OUTPUT, output))
        try:
            hi, lo = attempt.key
            given = [(stream, held) for stream, held in ids if held is not None]
            runs = [Run(hi, lo, 0, number, stream, 0, held) for number, (stream, held) in enumerate(given)]
            return self.content.offer(attempt.content_place(), runs)
        except Exception as error:
            self.losses.count(GapReason.SERIALISE, attempts=0)
            report_error(error, "offer")
            if raises():
                raise
        return -1

    def offer_trace(
        self,
        attempt: Attempt,
        events: Events,
        strategy: Strategy | Sequence[Strategy] | None,
        child: int,
        held_bytes: int,
    ) -> bool:
        """`Attempt.offer_trace`. Never raises."""
        try:
            if self.part is not None:
                events = partial(placed, self.part, events)
            return self.traces.offer(attempt, events, strategy, child, held_bytes)
        except Exception as error:
            self.losses.count(GapReason.SERIALISE, attempts=0)
            report_error(error, "offer_trace")
            if raises():
                raise
        return False

    def drain_content(self, *, all_: bool = False) -> None:
        """Write the id blocks that are due, and the traces (keeper and close only)."""
        self.content.drain(self.content_files.append, all_=all_)
        self.traces.drain(self.content_files.append)
        self.content_files.roll()

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
        _closed.add(self)
        if not self.losses.snapshot():
            _living.discard(self)

    def _outlive(self) -> None:
        """Live until what was lost after the close is written, though nobody but an attempt may know us any more."""
        _living.add(self)

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


_living: Final[set[Recorder]] = set()
_closed: Final[weakref.WeakSet[Recorder]] = weakref.WeakSet()


def _close_all() -> None:
    for recorder in list(_living):
        with Guard("close"):
            recorder.close()


def _after_fork() -> None:
    guard.after_fork()
    for recorder in {*_living, *_closed}:
        recorder.after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
