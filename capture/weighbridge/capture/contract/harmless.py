"""Whether an adapter hurts its host: imports, results, errors, what it leaves behind, what it loses, what it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.contract.engine import CANARY, Call, Engine, NotOfferedError
from weighbridge.capture.contract.report import Broken
from weighbridge.capture.contract.trial import Trial, as_in_production, called, installed, once, trial
from weighbridge.schemas.errors import ConfigError

_THREADS = 4


def imports(engine: Engine) -> list[Broken]:
    """Importing the adapter's module loads no framework: a host that never uses it pays nothing."""
    if not engine.module:
        raise NotOfferedError("no module is named")
    code = f"import {engine.module}, sys, json; print(json.dumps(sorted({{n.partition('.')[0] for n in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        return [Broken("import", f"importing {engine.module} failed; it may need nothing but pyarrow")]
    loaded = sorted(set(json.loads(done.stdout.splitlines()[-1])) & set(engine.frameworks))
    return (
        [Broken("import", f"importing {engine.module} loads {', '.join(loaded)}; import it where it is used")]
        if loaded
        else []
    )


def same_results(engine: Engine) -> list[Broken]:
    """The caller gets what it would have got."""
    _own(engine)
    if not engine.deterministic:
        raise NotOfferedError("the same call gives different results")
    before = called(engine, "plain").result
    with trial(engine) as made, installed(engine, made):
        watched = called(engine, "plain").result
    after = called(engine, "plain").result
    if before == watched == after:
        return []
    return [Broken("result", "a call gives another result with the adapter than without; change nothing of it")]


def never_raises(engine: Engine) -> list[Broken]:
    """Whatever goes wrong in the agent, the call goes on and its result is the same."""
    _own(engine)
    broken: list[Broken] = []
    before = called(engine, "plain").result if engine.deterministic else None
    for name, target in (("begin", Binding), ("finish", Attempt), ("offer", Attempt)):
        with as_in_production(), trial(engine, level=2) as made, installed(engine, made):
            with mock.patch.object(target, name, side_effect=RuntimeError("the agent is broken")):
                try:
                    result = called(engine, "plain").result
                except Exception as error:  # noqa: BLE001 - that is what is looked for
                    found = f"{type(error).__name__} reached the caller when `{name}` failed"
                    broken.append(Broken("raised", f"{found}; guard what you wrap with capture.guard.Guard"))
                    continue
            if engine.deterministic and result != before:
                broken.append(Broken("raised", f"the result is another one when `{name}` fails"))
    return broken


def removed(engine: Engine) -> list[Broken]:
    """After removal nothing is recorded and every object is as it was; removing twice does no harm."""
    _own(engine)
    broken: list[Broken] = []
    before = [_surface(each) for each in engine.touched()]
    with trial(engine) as made:
        with installed(engine, made) as held:
            pass
        assert held is not None
        held.remove()
        if [_surface(each) for each in engine.touched()] != before:
            broken.append(Broken("left_behind", "an object is not as it was; use put_attribute of adapters.adapter"))
        called(engine, "plain")
        attempts, _, _ = made.rows(0)
        if attempts:
            broken.append(Broken("left_behind", f"{len(attempts)} attempts were written after removal"))
    return broken


def installed_twice(engine: Engine) -> list[Broken]:
    """A second installation is refused, or records nothing twice."""
    _own(engine)
    with trial(engine) as made, ExitStack() as held:
        assert made.recorder is not None
        held.enter_context(installed(engine, made))
        try:
            second = engine.install(made.recorder)
        except ConfigError:
            return []
        held.callback(second.remove)
        call = called(engine, "plain")
        attempts, _, _ = made.rows(len(call.truths))
        if len(attempts) == len(call.truths) and all(once(row) for row in attempts):
            return []
    return [Broken("twice", "a second installation records a call twice; refuse it with a ConfigError")]


def on_threads(engine: Engine) -> list[Broken]:
    """Calls on several threads at once are all recorded, each as itself."""
    _own(engine)
    if not engine.threads:
        raise NotOfferedError("calls are not made on several threads")
    calls: list[Call] = []
    with trial(engine) as made, installed(engine, made):
        workers = [threading.Thread(target=lambda: calls.append(called(engine, "plain"))) for _ in range(_THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        wanted = [truth for call in calls for truth in call.truths]
        return _all_there(made, wanted, "on threads")


def in_forks(engine: Engine) -> list[Broken]:
    """A forked child records in files of its own, and the parent goes on."""
    _own(engine)
    if not engine.forks or not hasattr(os, "fork"):
        raise NotOfferedError("calls are not made in forked children")
    with trial(engine) as made, installed(engine, made):
        first = called(engine, "plain")
        child = os.fork()
        if not child:
            code = 1
            try:
                called(engine, "plain")
                assert made.recorder is not None
                made.recorder.do_chores(last=True)
                made.recorder.close()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            return [Broken("fork", "a call in a forked child failed")]
        second = called(engine, "plain")
        # The child's are those of a call like ours.
        return _all_there(made, [*first.truths, *second.truths, *second.truths], "around a fork")


def losses(engine: Engine) -> list[Broken]:
    """Where nothing can be written the call goes on, and every attempt that is lost is counted."""
    _own(engine)
    with as_in_production(), tempfile.TemporaryDirectory(prefix="weighbridge-contract-") as folder:
        blocked = Path(folder) / "file"
        blocked.write_bytes(b"")
        with trial(engine, spool=blocked / "spool") as made, installed(engine, made):
            call = called(engine, "plain")
            assert made.recorder is not None
            made.recorder.do_chores(last=True)
            lost = made.recorder.losses.total
    if lost == len(call.truths):
        return []
    return [
        Broken("losses", f"{len(call.truths)} attempts were lost to a spool that cannot be written, {lost} counted")
    ]


def no_text(engine: Engine) -> list[Broken]:
    """No file of the agent holds a word of a prompt (every prompt of a contract has to hold the canary)."""
    with trial(engine) as made, installed(engine, made):
        called(engine, "plain")
        made.rows(1)
        found = [path.name for path in made.spool.iterdir() if path.is_file() and CANARY.encode() in path.read_bytes()]
    return [Broken("text", f"{len(found)} files hold words of a prompt; pass numbers and names only")] if found else []


def _all_there(made: Trial, wanted: list[Any], where: str) -> list[Broken]:
    attempts, _, _ = made.rows(len(wanted))
    names = sorted({name for truth in wanted for name in truth.must if name in truth.counts})
    told = sorted(tuple(row.get(name) for name in names) for row in attempts)
    true = sorted(tuple(truth.counts.get(name) for name in names) for truth in wanted)
    if told == true and all(once(row) for row in attempts):
        return []
    return [
        Broken(
            "attempts", f"{len(attempts)} attempts were written {where}, or not as they were; {len(wanted)} were made"
        )
    ]


def _own(engine: Engine) -> None:
    if engine.spool is not None:
        raise NotOfferedError("the agent runs in another process")


def _surface(target: object) -> dict[str, int]:
    return {name: id(value) for name, value in vars(target).items()}
