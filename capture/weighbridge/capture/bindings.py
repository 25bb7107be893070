"""What stays the same for many attempts: bound once, numbered in the dictionary, decided by the policy."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from weighbridge.capture import layout, policy
from weighbridge.capture.binding import Binding
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.dictionary import DictionaryFullError, Entry
from weighbridge.capture.guard import report as report_error
from weighbridge.capture.journal import JournalUnavailableError
from weighbridge.capture.offers import Offers
from weighbridge.capture.policy import Policy, PolicyFile
from weighbridge.capture.replicated import PartBinding
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder


class Bindings(Offers):
    """The binding side of a recorder.

    Attributes:
        key: the installation's pseudonym key.
        policy: the levels in force.
    """

    key: bytes
    policy: Policy
    _policy_file: PolicyFile | None
    _bindings: weakref.WeakSet[Binding]
    _calls: itertools.count[int]

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
            binding = made(cast("Recorder", self), number, counts, facts, root, values, context.subject_bucket)
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
