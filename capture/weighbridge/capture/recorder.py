"""The recorder: one per process. It binds what stays the same, hands out attempts, and writes each with one store.

    recorder = Recorder.start(spool, installation="gateway-1", key=key)
    chat = recorder.bind(provider="openai", api="openai_chat", model_requested="gpt-4o", tenant="acme", task="chat")
    attempt = chat.begin()
    ...
    attempt.finish(outcome, counts, usage=body["usage"])      # True: it survives a SIGKILL from here on

The request path takes no lock, hashes nothing, writes no file and never raises. What it cannot keep is counted by
reason and written as a gap record by the keeper, a thread that also makes pages writable ahead, adds their checksums,
prepares the next file and reads the policy again.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import operator
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeGuard

from weighbridge.capture import guard, layout, policy
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.content import SUFFIX as CONTENT_SUFFIX
from weighbridge.capture.content import Content, ContentWriter, Run, opening
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.dictionary import Dictionary, DictionaryFullError, Entry
from weighbridge.capture.guard import Guard, raises
from weighbridge.capture.guard import report as report_error
from weighbridge.capture.journal import (
    MAPPABLE,
    SEGMENT_BYTES,
    FileJournal,
    JournalHeader,
    JournalUnavailableError,
    MappedJournal,
    NoJournal,
    dictionary_slots,
    new_path,
    reason_of,
    spool_bytes,
)
from weighbridge.capture.keeper import Keeper
from weighbridge.capture.keys import KeyProvider
from weighbridge.capture.layout import FRESH, SLOT, Kind
from weighbridge.capture.losses import Losses
from weighbridge.capture.plan import LONGEST_KEY, Plan, Scratch, ShapeError, compile_plan
from weighbridge.schemas import leaves
from weighbridge.schemas.enumerations import (
    AttemptStatus,
    ChildKind,
    ForeignIdKind,
    GapReason,
    QuarantineReason,
    RunStream,
)
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import IDENTIFIER, NAME, AttemptKey, key_id
from weighbridge.schemas.version import SCHEMA_VERSION

Journal = MappedJournal | FileJournal | NoJournal
MOST_PLANS: Final = 64
MOST_LEARNT: Final = 256  # shapes one binding learns in its life; the leaves of others are written one by one
_SIGN: Final = -(1 << 63)
_BUSY_S: Final = 5.0  # for so long after a file was full the next one is kept ready
_NODES: Final = 1024  # of a usage object; a larger one is no usage and is not looked through in a request
_REASONS: Final = tuple(GapReason)
_UNKNOWN: Final = layout.outcome_word(AttemptStatus.UNKNOWN)
_KINDS: Final = {kind: code for code, kind in enumerate(ChildKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The agent's bounds. Each is a hard one."""

    spool_bytes: int = 4 << 30
    buffer_bytes: int = 16 << 20
    wait_s: float = 0.005
    keeper_s: float = 1.0
    journal_bytes: int = SEGMENT_BYTES
    content_bytes: int = 16 << 20
    content_roll_s: float = 900.0  # an older content file is followed by the next one, so that it can be sealed
    mapped: bool = True


class _Present:
    """What the request path reads of a recorder: in slots, where a cold cache has to fetch one line and not five."""

    __slots__ = ("__weakref__", "journal", "serials", "tail")

    journal: Journal
    serials: Iterator[int]
    tail: int


class Recorder(_Present):
    """The capture agent of one process. Use `Recorder.start`."""

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
    ) -> None:
        self.spool = spool
        self.installation = installation
        self.key = key
        self.limits = limits
        self.losses = Losses()
        self.written_slow = 0
        self.not_durable = 0
        self.repeated = 0
        self._facts = dict(facts)
        self._keys = keys
        self._policy_file = policy_file
        self._policy_seen = b""
        self.policy = policy.Policy()
        self._bindings: weakref.WeakSet[Binding] = weakref.WeakSet()
        # One lock for files and dictionary: with two, a roll and a new entry would wait for each other.
        self._lock = threading.RLock()
        self._tally = threading.Lock()
        self._closed = False
        # Work of adapters off the request path, such as recounts: called by the keeper, and with True at the end.
        self.chores: list[Callable[[bool], None]] = []
        self.dictionary = Dictionary(self._write_entry, self._in_use, self._lock)
        self._reset()

    def _reset(self) -> None:
        """A process of its own: fresh random tail, fresh files, nothing inherited."""
        self.pid = os.getpid()
        self.tail = _SIGN | int.from_bytes(os.urandom(8), "big") >> 2
        self.serials = itertools.count(1)
        self.process = os.urandom(8).hex()
        self._ordinal = itertools.count()
        self.journal = NoJournal(GapReason.SHUTDOWN)
        self.content = Content(self._keys, self.losses, buffer_bytes=self.limits.buffer_bytes)
        self._content_file: ContentWriter | None = None
        self._content_ordinal = itertools.count()
        self._next: MappedJournal | None = None
        self._old: list[Journal] = []
        self._keeping = threading.Lock()
        self._making = threading.Lock()
        self._rolled_at = -_BUSY_S
        self._spool_bytes = 0
        self._unopened = False

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
    ) -> Recorder:
        """Open the spool and start the keeper.

        Args:
            spool: a folder of the agent's own; made 0700 if it is not there.
            installation: the name that becomes the `source` of its rows.
            key: the installation's pseudonym key, 16 to 64 bytes.
            keys: who gives the keys token ids are encrypted with; without one ids are counted as lost under `no_key`.
            policy_file: see `policy`; without one every attempt is captured at level 1.
            role, rank: place of this process in a model that runs in several.

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
            installation=installation,
            key=key,
            limits=limits or Limits(),
            policy_file=None if policy_file is None else Path(policy_file),
            keys=keys,
            facts={"role": role, "rank": rank, "key_id": key_id(key), "schema_version": SCHEMA_VERSION},
        )
        recorder.read_policy()
        recorder.open()
        return recorder

    # -- files ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the first journal and start the keeper."""
        with self._lock:
            self._unopened = False
            self.journal = self._filled(self._file(measure=True))
            self.keeper = Keeper(self)
            self.keeper.start()
        _living.add(self)

    def _file(self, *, measure: bool) -> Journal:
        """A new file, empty. `measure`: look at the whole spool first; else go by what the keeper saw last."""
        try:
            self.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock:
                size = max(self.limits.journal_bytes, 8 * SLOT * len(self._in_use()))
            facts = {**self._facts, "tail": self.tail, "policy": self.policy.digest, "process": self.process}
            header = JournalHeader(self.installation, facts)
            ordinal = next(self._ordinal)
            path = new_path(self.spool, self.installation, ordinal)
            with self._making:  # two that looked at the same room would both take it
                if measure:
                    self._spool_bytes = spool_bytes(self.spool)
                if self._spool_bytes + size > self.limits.spool_bytes:
                    raise JournalUnavailableError(GapReason.QUOTA)
                self._spool_bytes += size
                if self.limits.mapped and MAPPABLE:
                    return MappedJournal(path, header, ordinal, size)
                return FileJournal(
                    path,
                    header,
                    ordinal,
                    wait_s=self.limits.wait_s,
                    buffer_bytes=self.limits.buffer_bytes,
                    lost=self.losses.count,
                )
        except JournalUnavailableError as error:
            return NoJournal(error.reason)
        except (OSError, ValueError) as error:
            report_error(error, "spool")
            return NoJournal(reason_of(error) if isinstance(error, OSError) else GapReason.SERIALISE)

    def _filled(self, journal: Journal) -> Journal:
        """The file with every entry at its head that a record may still refer to (under the lock)."""
        if isinstance(journal, NoJournal):
            return journal
        for stored in self.dictionary.keep(journal.slots // 8):
            if any(journal.put_entry(slot) is None for slot in dictionary_slots(*stored)):
                journal.discard()
                return NoJournal(GapReason.BUFFER_FULL)
        return journal

    def _in_use(self) -> set[int]:
        """Dictionary numbers that living bindings use."""
        used: set[int] = set()
        for binding in list(self._bindings):
            used |= {binding.context, binding.parameters, *(plan.number for plan in list(binding.plans))}
        return used

    def prepare(self) -> None:
        """Make the next file while the present one still has room (keeper only)."""
        journal = self.journal
        if isinstance(journal, NoJournal):
            if not self._unopened and not self._closed:
                self._replace(journal)
        elif isinstance(journal, MappedJournal) and self._next is None:
            busy = time.monotonic() - self._rolled_at < _BUSY_S
            if busy or journal.used() * 2 > journal.slots:
                made = self._file(measure=True)
                with self._lock:
                    made = self._filled(made)
                    if isinstance(made, MappedJournal):
                        self._next = made

    def replace_lost_files(self) -> None:
        """Go on in a new file where the present one failed or was unlinked under us (keeper only)."""
        journal, ready = self.journal, self._next
        if ready is not None and ready.vanished():
            with self._lock:
                self._next = None
            ready.forget()
        if journal.vanished() or (isinstance(journal, FileJournal) and journal.failed is not None):
            self._replace(journal)

    def _replace(self, journal: Journal) -> None:
        """Go on in a new file, which is made before the lock is taken: a slow disk holds nobody up."""
        made = self._file(measure=True)
        with self._lock:
            if self.journal is not journal:
                made.discard()
                return
            made = self._filled(made)
            if isinstance(made, NoJournal) and not journal.vanished() and not isinstance(journal, FileJournal):
                if isinstance(journal, NoJournal):
                    self.journal = made
                return
            self._change(journal, made)

    def _roll(self, full: Journal) -> None:
        with self._lock:
            if self.journal is not full:
                return
            made, self._next = self._next, None
            self._change(full, made or self._filled(self._file(measure=False)))
            self._rolled_at = time.monotonic()
        self.keeper.wake()

    def _change(self, before: Journal, after: Journal) -> None:
        self.journal = after
        before.stop()
        if not isinstance(before, NoJournal):
            self._old.append(before)

    def retire(self, *, wait: bool = False) -> None:
        """Close the files that were rolled over and in which no store is under way (keeper and close only).

        While there is no file to go on in, the last full one stays open: its reserved slots take the losses.
        """
        with self._keeping:
            for journal in list(self._old):
                stranded = isinstance(self.journal, NoJournal)
                if not wait and (not journal.settled() or (stranded and journal is self._old[-1])):
                    continue
                if journal.vanished():
                    if stranded and not wait:
                        continue
                    self._rescue(journal)
                journal.close(2, journal.used(), self.losses.total)
                self._old.remove(journal)

    def _rescue(self, journal: Journal) -> None:
        """Store again what a file held that was unlinked under us; count what cannot be."""
        if not isinstance(journal, MappedJournal):
            self.losses.count(GapReason.CORRUPT, journal.used())
            return
        for slot in journal.rescued():
            try:
                self._put(slot)
            except JournalUnavailableError:
                self.losses.count(GapReason.CORRUPT, slot[0] & ~FRESH == Kind.ATTEMPT)

    def _write_entry(self, entry: Entry, number: int, payload: bytes) -> None:
        """All slots of an entry into one file, and into the one that is ready to follow (under the lock)."""
        slots = dictionary_slots(entry, number, payload)
        for _ in range(3):
            journal = self.journal
            if isinstance(journal, NoJournal) and not number:
                raise JournalUnavailableError(journal.reason)
            if all(journal.put_entry(slot) is not None for slot in slots):
                break
            self._roll(journal)
        else:
            raise JournalUnavailableError(GapReason.BUFFER_FULL)
        ready = self._next
        if number and ready is not None and any(ready.put_entry(slot) is None for slot in slots):
            self._next = None
            ready.discard()

    def _put(self, slot: bytes) -> bool:
        """One finished slot into the present file. True when it is durable; raises JournalUnavailableError if lost."""
        if self._unopened:
            self._open_late()
        while True:
            journal = self.journal
            placed = journal.put(slot)
            if placed is not None:
                return placed
            self._roll(journal)

    def _open_late(self) -> None:
        """A forked child opens its files at its first record: most children of a server never make one."""
        with self._lock:
            if self._unopened:
                self.open()

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
        with self._lock:
            number = self._number(Entry.CONTEXT, entry, 0)
            values = -1 if parameters is None else self.parameters(parameters)
            binding = Binding(self, number, counts, facts, root, values, context.subject_bucket)
            self._decide(binding)
            self._bindings.add(binding)
        return binding

    def _number(self, entry: Entry, content: Mapping[str, object], otherwise: int) -> int:
        """The number of an entry, or `otherwise` where there is no room for it: binding must not fail for that."""
        try:
            return self.dictionary.number(entry, content)
        except (DictionaryFullError, JournalUnavailableError) as error:
            report_error(error, "dictionary")
            return otherwise

    def parameters(self, parameters: Parameters) -> int:
        """The dictionary number of generation parameters that differ from call to call."""
        return self._number(Entry.PARAMETERS, parameters.entry(), -1)

    def _decide(self, binding: Binding) -> None:
        decision = self.policy.decide(*binding.facts, policy.today())
        binding.decision = decision if decision.threshold else None

    def read_policy(self) -> None:
        """Read the policy file if its content changed. A file that cannot be read leaves the policy as it is."""
        if self._policy_file is None:
            return
        try:
            raw = self._policy_file.read_bytes()
            if raw != self._policy_seen:
                self._policy_seen = raw
                self.policy = policy.parse_policy(raw, str(self._policy_file), self.key)
                self._name_policy()
        except (OSError, ConfigError) as error:
            report_error(error, "policy")
        with self._lock:
            bindings = list(self._bindings)
        for binding in bindings:
            self._decide(binding)

    def _name_policy(self) -> None:
        """Go on in a file whose header names the policy now in force; where none can be made the present one stays."""
        if isinstance(self.journal, NoJournal):
            return
        with self._lock:
            ready, self._next = self._next, None
        if ready is not None:
            ready.discard()
        self._replace(self.journal)

    def scope_context(self, context: int, name: str) -> int:
        """The dictionary number of a context with the name of a stage added."""
        try:
            return self.dictionary.derive(context, {"scope": name})
        except (DictionaryFullError, JournalUnavailableError, KeyError) as error:
            report_error(error, "dictionary")
            return context

    def put_slot(self, slot: bytes) -> bool:
        """Store a rendered slot; a loss is counted."""
        try:
            return self._put(slot)
        except JournalUnavailableError as error:
            self.losses.count(error.reason)
            return False

    # -- writing off the fast path -------------------------------------------------------------------------------------

    def write_slow(
        self,
        attempt: Attempt,
        outcome: int,
        counts: Sequence[int],
        usage: object,
        ids_expected: int,
        journal: Journal | None,
        offset: int,
    ) -> bool:
        """Write what the fast path could not: an unknown shape, a null, a full file, the fallback. Never raises."""
        unused = journal if isinstance(journal, MappedJournal) and journal.holds(offset) else None
        try:
            if os.getpid() != self.pid:
                unused = None
                return False  # forked without a call of the fork hooks: this process has no journal
            if not attempt.binding.context:
                raise DictionaryFullError
            slot = self._render(attempt.binding, _head(attempt, outcome, ids_expected), _whole(counts), usage, hot=True)
            # The slot that was taken serves only while its file is the present one: an entry that was written since
            # a roll stands in the new file.
            if unused is not None and unused is self.journal:
                unused.store(offset, slot)
                unused, durable = None, True
            else:
                durable = self._put(slot)
            with self._tally:
                self.written_slow += 1
                self.not_durable += not durable
        except JournalUnavailableError as error:
            self.losses.count(error.reason)
        except DictionaryFullError:
            self.losses.count(GapReason.BUFFER_FULL)
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE)
        else:
            return durable
        finally:
            if unused is not None:
                unused.void(offset)
        return False

    def put_usage(self, binding: Binding, attempt: Attempt, outcome: int, usage: object, part: int) -> bool:
        """Store a further part of an answer's usage, after the one that stands in the attempt itself. Never raises.

        Args:
            binding: one without counts, whose root says where this part's usage stood in its event.
            outcome: as in `Attempt.finish`; its part kind is that of this part.
            part: 1 for the first further part, then 2, 3, ...
        """
        try:
            if os.getpid() != self.pid:
                return False
            word = outcome | attempt.level_bits | attempt.mark_bits
            head = [0, attempt.hi, attempt.lo, 0, 0, attempt.arrived_us, -1, word, part, -1]
            slot = bytearray(self._render(binding, head, (), usage, part))
            slot[0] = Kind.USAGE
            return self.put_slot(bytes(slot))
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE)

    def put_foreign_id(self, attempt: Attempt, kind: ForeignIdKind, value: str) -> None:
        """Store an identifier another system gave to this attempt. What does not look like one is dropped."""
        with Guard("foreign_id"):
            if os.getpid() == self.pid and IDENTIFIER.fullmatch(value):
                content = {
                    "attempt": attempt.key.to_hex(),
                    "kind": str(kind),
                    "value": value,
                    "us": attempt.arrived_us,
                }
                try:
                    self.dictionary.once(Entry.FOREIGN_ID, content)
                except JournalUnavailableError as error:
                    self.losses.count(error.reason, attempts=0)

    def _render(
        self, binding: Binding, head: list[int], counts: Sequence[int], usage: object, part: int = 0, *,
        hot: bool = False,
    ) -> bytes:  # fmt: skip
        """The slot of one record; `hot`: its plan becomes the one the fast path tries."""
        scratch = Scratch()
        counts = [*counts[: len(binding.counts)], *[-1] * (len(binding.counts) - len(counts))]
        for plan in reversed(list(binding.plans)):
            try:
                self._store(plan, binding, head, counts, usage, scratch)
            except Exception:  # noqa: BLE001, S112 - a usage object may be anything; the last resort is below
                continue
            break
        else:
            plan = self._learnt(binding, head, counts, usage, part, scratch)
        if hot:
            binding.hot = (plan.store, binding.tag(plan))
        return bytes(scratch.raw)

    def _learnt(
        self, binding: Binding, head: list[int], counts: Sequence[int], usage: object, part: int, scratch: Scratch
    ) -> Plan:
        """Learn the shape of `usage`; where no plan can store it, its leaves get an entry of their own."""
        try:
            if binding.learnt >= MOST_LEARNT and usage is not None:
                raise ShapeError("this binding met too many shapes to learn another")
            plan = self._learn(binding, usage)
            self._store(plan, binding, head, counts, usage, scratch)
        except (DictionaryFullError, JournalUnavailableError):
            raise
        except Exception:  # noqa: BLE001 - as above
            plan = next((plan for plan in binding.plans if plan.bare), None) or self._learn(binding, None)
            self._write_leaves(binding, head, usage, part)
            self._store(plan, binding, head, counts, None, scratch)
        return plan

    def _store(
        self, plan: Plan, binding: Binding, head: list[int], counts: Sequence[int], usage: object, scratch: Scratch
    ) -> None:
        scratch.clear()  # of what a plan stored before it found that something does not fit
        head[0] = binding.tag(plan)
        plan.store(scratch, 0, head, counts, usage)

    def _learn(self, binding: Binding, usage: object) -> Plan:
        with self._lock:
            trial = compile_plan(0, binding.counts, usage, self.key, binding.root)
            number = self.dictionary.number(Entry.PLAN, trial.describe())
            plan = compile_plan(number, binding.counts, usage, self.key, binding.root)
            if len(binding.plans) >= MOST_PLANS:
                binding.plans.pop(0)
            binding.plans.append(plan)
            binding.learnt += 1
        return plan

    def _write_leaves(self, binding: Binding, head: Sequence[int], usage: object, part: int) -> None:
        flat = _flattened(usage, self.key, binding.root)
        content = {
            "attempt": AttemptKey(head[1], head[2]).to_hex(),
            "context": binding.context,
            "us": head[5],
            "outcome": head[7],
            "part": part,
            "leaves": [list(leaf) for leaf in flat.leaves],
            "refusals": [[refusal.path, str(refusal.reason)] for refusal in flat.refusals],
            "dropped": flat.dropped_strings,
            "integral": flat.integral_floats,
        }
        self.dictionary.once(Entry.LEAVES, content)

    def repeat(self) -> bool:
        """Count a second finish of an attempt; its first one stands. Always False."""
        with self._tally:
            self.repeated += 1
        return False

    def swallow(self, error: Exception, reason: GapReason = GapReason.CALLBACK_ERROR) -> bool:
        """Count an attempt lost through an error of our own. Always False."""
        self.losses.count(reason)
        report_error(error, "finish")
        if raises():
            raise error
        return False

    def finish_child(
        self, attempt: Attempt, child: int, kind: ChildKind, outcome: int, counts: Sequence[int] = ()
    ) -> bool:
        """Write a child of `attempt` (a choice, beam, iteration or prompt); call it before the attempt is finished.

        Args:
            child: its number, from 1.
            outcome: see `layout.outcome_word`.
            counts: the integers the attempt's binding names, in its order, -1 where unknown.

        Returns:
            True when the record survives a SIGKILL from here on. Never raises.
        """
        try:
            head = [
                0, attempt.hi, attempt.lo, attempt.request_hi, attempt.request_lo, attempt.arrived_us,
                attempt.parameters, outcome | attempt.level_bits, child | _KINDS[kind] << 16, -1,
            ]  # fmt: skip
            slot = self._render(attempt.binding, head, _whole(counts), None)
            return self._put(bytes((Kind.CHILD,)) + slot[1:])
        except JournalUnavailableError as error:
            self.losses.count(error.reason, attempts=0)
            return False
        except DictionaryFullError:
            self.losses.count(GapReason.BUFFER_FULL, attempts=0)
            return False
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE)

    def finish_many(self, finished: Iterable[tuple[Attempt, int, Sequence[int], object]]) -> int:
        """Finish the attempts that ended in one engine step; how many are durable."""
        durable = 0
        try:
            for attempt, outcome, counts, usage in finished:
                durable += attempt.finish(outcome, counts, usage)
        except Exception as error:  # noqa: BLE001 - what was handed over is no list of finishes
            self.swallow(error)
        return durable

    # -- content -------------------------------------------------------------------------------------------------------

    def offer_ids(self, attempt: Attempt, runs: Sequence[Run]) -> int:
        """Hand over the token ids of one attempt by reference (level 2 and up); how many ids will follow, -1 none."""
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

    def drain_content(self, *, all_: bool = False) -> None:
        """Write the id blocks that are due (keeper and close only)."""
        self.content.drain(self._append_content, all_=all_)
        old = self._content_file
        if old is not None and old.blocks and (
            old.size >= self.limits.content_bytes or time.monotonic() - old.since > self.limits.content_roll_s
        ):  # fmt: skip
            # The next one is there before the last one is let go: a reader sees that the process lives.
            with contextlib.suppress(OSError):
                self._content_file = self._new_content()
                old.close()

    def _new_content(self) -> ContentWriter:
        path = new_path(self.spool, self.installation, next(self._content_ordinal)).with_suffix(CONTENT_SUFFIX)
        return ContentWriter(path, opening(self.installation, self.process, key_id(self.key)))

    def _append_content(self, frame: bytes) -> GapReason | None:
        """Append one encrypted block to the content file of this process; the reason where that cannot be done."""
        if spool_bytes(self.spool) + len(frame) > self.limits.spool_bytes:
            return GapReason.QUOTA
        try:
            if self._content_file is None:
                self._content_file = self._new_content()
            self._content_file.append(frame)
        except OSError as error:
            return reason_of(error)
        return None

    # -- end -----------------------------------------------------------------------------------------------------------

    def write_losses(self) -> None:
        """Write what was lost as gap records; what cannot be written now waits (keeper and close only)."""
        for reason, loss in self.losses.drain().items():
            index = _REASONS.index(reason)
            words = (Kind.GAP, index, loss.attempts, loss.tokens, loss.began_us, loss.ended_us)
            try:
                self._put(struct.pack("<6q", *words) + bytes(SLOT - 48))
            except JournalUnavailableError:
                with self._keeping:
                    last = self._old[-1] if self._old else None
                    if isinstance(last, MappedJournal) and not last.vanished():
                        last.put_gap(index, *words[2:])
                    else:
                        self.losses.give_back(reason, loss)

    def close(self) -> None:
        """Write what waits, close the files. Later finishes are counted as lost through shutdown."""
        with self._lock:
            if self._closed or os.getpid() != self.pid:
                return
            self._closed = True
        self.keeper.stop()
        self.do_chores(last=True)
        self.drain_content(all_=True)
        if self._content_file is not None:
            with Guard("content.close"):
                self._content_file.close()
            self._content_file = None
        with self._lock:
            spare, self._next = self._next, None
            self._unopened = False
        if spare is not None:
            spare.discard()
        for step in (self.replace_lost_files, self.write_losses, lambda: self.retire(wait=True), self._close_last):
            with Guard("close"):
                step()
        _living.discard(self)

    def _close_last(self) -> None:
        with self._lock:
            last, self.journal = self.journal, NoJournal(GapReason.SHUTDOWN)
            last.stop()
        last.close(1, last.used(), self.losses.total)

    def do_chores(self, *, last: bool = False) -> None:
        """What adapters left for the keeper (keeper and close only)."""
        for chore in list(self.chores):
            with Guard("chore"):
                chore(last)

    def after_fork(self) -> None:
        """In a forked child: forget the parent's files and open fresh ones."""
        for journal in (self.journal, self._next, *self._old):
            if journal is not None:
                journal.forget()
        if self._content_file is not None:
            self._content_file.forget()
        self._lock = self.dictionary.lock = threading.RLock()
        self._tally = threading.Lock()
        self.losses = Losses()
        closed = self._closed
        self._reset()
        if not closed:
            self.journal = NoJournal(GapReason.FORK)
            self._unopened = True


def _head(attempt: Attempt, outcome: object, ids_expected: object) -> list[int]:
    """The head of an attempt whatever the caller passed; what is no integer is unknown."""
    word = outcome if _is_word(outcome) else _UNKNOWN
    ids = ids_expected if _is_word(ids_expected) else -1
    # The fast path may have set the outcome before it found that something else does not fit.
    return [0, *attempt.settled()[1:7], word | attempt.level_bits | attempt.mark_bits, attempt.place, ids]


def _is_word(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 63


def _whole(counts: object) -> list[int]:
    """Counts whatever the caller passed; what is no 64-bit integer is unknown, and said."""
    if not isinstance(counts, (tuple, list)):
        report_error(TypeError(), "counts")
        return []
    out = []
    for value in counts:
        if hasattr(value, "__index__") and _is_word(operator.index(value)):
            out.append(operator.index(value))
        else:
            if value is not None:
                report_error(TypeError(), "counts")
            out.append(-1)
    return out


def _flattened(usage: object, key: bytes, root: str) -> leaves.Flattened:
    """The leaves of a usage object, or a refusal where it is too large, or changes or raises while it is read."""
    refused = leaves.Flattened()
    try:
        if _nodes(usage, _NODES) < 0:
            refused.refusals.append(leaves.Refusal(root, QuarantineReason.TOO_LARGE))
            return refused
        return leaves.flatten(usage, key, root)
    except Exception as error:  # noqa: BLE001 - the object may be anything
        report_error(error, "usage")
    refused.refusals.append(leaves.Refusal(root, QuarantineReason.TYPE))
    return refused


def _nodes(value: object, left: int) -> int:
    """How many more values a usage object may have after `value`; below 0: it has too many, or a key too long."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            left = _nodes(item, left - 1) if len(str(key)) <= LONGEST_KEY else -1
            if left < 0:
                break
    elif isinstance(value, (list, tuple)):
        left = left - len(value)
        for item in value[: leaves.MAX_LIST + 1] if left >= 0 else ():
            left = _nodes(item, left)
            if left < 0:
                break
    return left


_living: set[Recorder] = set()


def _close_all() -> None:
    for recorder in list(_living):
        recorder.close()


def _after_fork() -> None:
    guard.after_fork()
    for recorder in list(_living):
        recorder.after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
