"""A whole run: every strategy on every prompt, the baseline twice, under the agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from weighbridge.capture import layout
from weighbridge.capture.adapters import transformers as engine
from weighbridge.capture.adapters._identity import model_fingerprint
from weighbridge.capture.comparison import attention
from weighbridge.capture.comparison.answering import Forced, Made, Shape, forced, made
from weighbridge.capture.comparison.events import drafts, events_of
from weighbridge.capture.comparison.files import ROWS, SPOOL, TOKENIZER, write_run
from weighbridge.capture.comparison.meaning import Meaning, Read, alike
from weighbridge.capture.comparison.prompt import Prompt, prompts
from weighbridge.capture.comparison.setting import Setting, settings
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.schemas.comparison_run import ENGINE, TRACER
from weighbridge.schemas.enumerations import AttemptStatus, Environment
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey, new_attempt_id
from weighbridge.schemas.keys import KeyProvider
from weighbridge.schemas.strategy import Strategy

LEVEL: Final = 3
TASK: Final = "comparison"
COUNTS: Final = (
    "input_computed", "output_computed", "attended", "attended_dense", "forward", "kv_appended", "kv_evicted",
    "kv_kept",
)  # fmt: skip
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        model, tokenizer: as loaded; the tokenizer is null where all prompts are ids.
        model_name: how the model is called.
        settings: the baseline first.
        prompts: in order.
        cap: most new tokens.
        seed: for whatever is drawn.
        forced: whether the baseline's answers are fed to the model under each strategy.
        meaning: what tells likeness of meaning; null: nothing does.
    """

    model: Any
    tokenizer: Any
    model_name: str
    settings: tuple[Setting, ...]
    prompts: tuple[Prompt, ...]
    cap: int
    seed: int
    forced: bool = True
    meaning: Meaning | None = None


def plan_of(given: Mapping[str, Any], model: Any, tokenizer: Any) -> Plan:
    """The plan that was written, for a model that is loaded.

    Raises:
        ConfigError: see `setting` and `prompts`; or attention of this model cannot be watched.
    """
    if not attention.supported(model):
        raise ConfigError(
            f"{type(model).__name__} has no plain attention that strategies can narrow; name a decoder of transformers"
        )
    held = prompts(given["prompts"], tokenizer, Shape.of(model).vocabulary)
    return Plan(
        model, tokenizer, given["model_name"], settings(given["strategies"]), tuple(held),
        given["max_new_tokens"], given["seed"], given.get("forced", True),
        None if given.get("meaning") is None else Meaning(given["meaning"]),
    )  # fmt: skip


class Run:
    """One run under way.

    Args:
        plan: what is to be run.
        folder: where it goes.
        key: the pseudonym key of the installation.
        keys: who gives the keys ids and traces are encrypted with.
    """

    def __init__(self, plan: Plan, folder: Path, key: bytes, keys: KeyProvider) -> None:
        self.plan = plan
        self.folder = folder
        self.shape = Shape.of(plan.model)
        self.revision = model_fingerprint(plan.model)
        self.tokenizer = _fingerprint(plan.tokenizer)
        self.strategies: dict[str, Strategy] = {
            each.name: each.strategy(self.revision, self.shape.layers, self.shape.query_heads, self.shape.kv_heads)
            for each in plan.settings
        }
        policy = folder / "policy.json"
        _claim(folder, policy)
        spool = folder / SPOOL
        self._engine = Recorder.start(spool, installation=ENGINE, key=key, keys=keys, policy_file=policy)
        self._tracer = Recorder.start(spool, installation=TRACER, key=key, keys=keys)
        self._rows: list[dict[str, Any]] = []
        self._base: Read | None = None
        self._before: Read | None = None

    def __call__(self) -> None:
        """Run everything and write the folder."""
        attention.register()
        before = self.plan.model.config._attn_implementation  # noqa: SLF001 - there is no other way to read it
        self.plan.model.set_attn_implementation(attention.NAME)
        try:
            for prompt in self.plan.prompts:
                self._answer(prompt)
        finally:
            self.plan.model.set_attn_implementation(before)
            self._engine.close()
            self._tracer.close()
        failed = seal_spool(self.folder / SPOOL).failed
        if failed:
            raise ConfigError(f"the spool of {self.folder} was not sealed: {failed[0][1]}; mend that and run it again")
        (self.folder / "policy.json").unlink()
        if self.plan.tokenizer is not None and hasattr(self.plan.tokenizer, "backend_tokenizer"):
            self.plan.tokenizer.backend_tokenizer.save(str(self.folder / TOKENIZER))
        write_run(self.folder, self._rows, self._about())

    def _answer(self, prompt: Prompt) -> None:
        """One prompt under every strategy; the baseline first, and once more."""
        off = self.plan.settings[0]
        first, key = self._made(off, prompt)
        self._before, self._base = self._base, self._read(first)
        base = self._forced(off, first.prompt, first.ids)
        self._row(off, prompt, first, key, 0, base, base)
        again, key = self._made(off, prompt)
        # Where the baseline repeats itself, so do its distributions; where not, they are the floor of other ones.
        floor = None if again.ids == first.ids else self._forced(off, again.prompt, first.ids)
        self._row(off, prompt, again, key, 1, floor, base)
        for each in self.plan.settings[1:]:
            answer, key = self._made(each, prompt)
            # Fed one token a step nothing is drafted: it would say of drafts what it says of the baseline. That holds
            # where the ids are the same; where they are not, verification is at fault, and from there on none agrees.
            same = set(each.parameters) == {"draft_length"}
            told = base if same else self._forced(each, answer.prompt, first.ids)
            self._row(each, prompt, answer, key, 0, told, base)
            if same and answer.ids != first.ids and base is not None:
                self._rows[-1] |= {"forced_agreed": _alike_until(first.ids, answer.ids), "nll": None, "kl": None}

    def _forced(self, each: Setting, prompt: tuple[int, ...], ids: tuple[int, ...]) -> Forced | None:
        return forced(self.plan.model, each, prompt, ids) if self.plan.forced and ids else None

    def _made(self, each: Setting, prompt: Prompt) -> tuple[Made, AttemptKey]:
        """An answer under the agent; the adapter takes its ids, the tracer what the strategy did."""
        strategy = self.strategies[each.name]
        context = Context(
            model_served=self.plan.model_name, model_revision=self.revision, framework="transformers",
            framework_version=version("transformers"), tokenizer=self.tokenizer, strategy_id=strategy.strategy_id,
            task=TASK, environment=Environment.DEVELOPMENT,
        )  # fmt: skip
        key = new_attempt_id()
        attempt = self._tracer.bind(context, counts=COUNTS).begin(key=key, level=LEVEL)
        with engine.install(self.plan.model, self._engine, context, fingerprint=False), engine.attempt_keys(key):
            answer = made(self.plan.model, each, prompt.ids, self.plan.cap, self.plan.seed)
        events = events_of(answer, each, self.shape, strategy.strategy_id, len(prompt.ids))
        attempt.offer_trace(events, strategy)
        held = answer.held
        # In `attempt` keys attended are those of one head, the mean over layers and heads.
        heads = self.shape.layers * self.shape.query_heads
        counts = (
            len(answer.prompt), len(answer.ids), answer.read.attended // heads, self._dense(prompt, answer) // heads,
            answer.read.forward + answer.hidden, held.written, held.dropped, held.kept,
        )  # fmt: skip
        attempt.finish(layout.outcome_word(AttemptStatus.SUCCEEDED, answer.stop), counts)
        return answer, key

    def _dense(self, prompt: Prompt, answer: Made) -> int:
        return self.shape.dense(len(prompt.ids) + len(answer.ids) - 1)

    def _row(
        self, each: Setting, prompt: Prompt, answer: Made, key: AttemptKey, run: int, told: Forced | None,
        base: Forced | None,
    ) -> None:  # fmt: skip
        held = answer.held
        drafted, accepted = drafts(answer) if each.draft_length is not None else (0, 0)
        strategy = self.strategies[each.name]
        text = None if self.plan.tokenizer is None else self._text
        self._rows.append({
            "pair": prompt.pair,
            "strategy": each.name,
            "run": run,
            "stop": str(answer.stop),
            "cluster": prompt.cluster,
            "attempt_hi": key.hi,
            "attempt_lo": key.lo,
            "output": len(answer.ids),
            "score": prompt.score(answer.ids, text),
            "origins": [dict(zip(("origin", "start", "length"), part, strict=True)) for part in prompt.origins],
            "prompt_tokens": len(prompt.ids),
            "pruned": len(answer.dropped),
            "attended": answer.read.attended,
            "attended_dense": self._dense(prompt, answer),
            "kv_written": held.written,
            "kv_kept": held.kept,
            "kv_evicted": held.dropped,
            "kv_masked": 0,
            "kv_peak_bytes": held.peak_bytes,
            "drafted": drafted,
            "accepted": accepted,
            "forward": answer.read.forward + answer.hidden,
            "hidden": answer.hidden,
            "events": len(events_of(answer, each, self.shape, strategy.strategy_id, len(prompt.ids))),
            "seconds": answer.seconds,
            "forced": None if told is None else len(told.likely),
            "forced_agreed": None if told is None or base is None else told.agreed(base),
            **self._alike(answer),
            "nll": None if told is None else told.nll,
            "kl": None if told is None or base is None else told.kl(base),
        })  # fmt: skip

    def _read(self, answer: Made) -> Read | None:
        reader = self.plan.meaning
        return None if reader is None or self.plan.tokenizer is None else reader.read(self._text(answer.ids))

    def _alike(self, answer: Made) -> dict[str, float]:
        """How like the baseline's answer it is, and how like that to the prompt before, which it should not be."""
        read = self._read(answer)
        out: dict[str, float] = {}
        for base, suffix in ((self._base, ""), (self._before, "_unrelated")):
            if read is not None and base is not None:
                out |= {f"{name}{suffix}": value for name, value in alike(base, read)._asdict().items()}
        return out

    def _text(self, ids: Any) -> str:
        return str(self.plan.tokenizer.decode(list(ids), skip_special_tokens=True))

    def _about(self) -> dict[str, Any]:
        return {
            "made_at": datetime.now(tz=UTC).isoformat(),
            "model": self.plan.model_name,
            "model_revision": self.revision,
            "tokenizer": self.tokenizer,
            "framework": f"transformers {version('transformers')}, torch {version('torch')}",
            "max_new_tokens": self.plan.cap,
            "seed": self.plan.seed,
            "prompts": len(self.plan.prompts),
            "answers": len(self._rows),
            "rows": ROWS,
            "strategies": [
                {
                    "name": each.name,
                    "parameters": each.parameters,
                    "implementation": each.implementation,
                    "strategy_id": self.strategies[each.name].strategy_id,
                }
                for each in self.plan.settings
            ],
        }


def _claim(folder: Path, policy: Path) -> None:
    """Write the policy, which says that this folder is taken: of two runs at once into one folder the second ends.

    Raises:
        ConfigError: another run was or is at work here.
    """
    try:
        with policy.open("x", encoding="utf-8") as file:
            file.write(json.dumps(_policy()))
    except FileExistsError:
        raise ConfigError(f"another run writes into {folder}, or was killed there; name a new folder") from None
    if any(each != policy for each in folder.iterdir()):
        policy.unlink()
        raise ConfigError(f"{folder} holds another run; name a new folder")


def _fingerprint(tokenizer: Any) -> str | None:
    if tokenizer is None:
        return None
    from weighbridge.recount.transformers import TransformersRecounter  # noqa: PLC0415 - takes a second

    return TransformersRecounter(tokenizer).tokenizer


def _alike_until(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """How many ids two answers begin with alike."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def _policy() -> dict[str, Any]:
    """Every attempt of the run is taken whole; the file is gone when the run ends."""
    expires = (datetime.now(tz=UTC) + timedelta(days=2)).date().isoformat()
    cell = {
        "tenant": None,
        "route": None,
        "strategy": None,
        "level": LEVEL,
        "purpose": "comparison",
        "expires": expires,
    }
    return {"version": 1, "cells": [cell]}
