"""A dialect as plain values and back: no dialect holds code, so the rules a report was read by can be kept as data.

Mappings become lists of pairs, for their order may count (the first value of an axis is the declared convention); sets
become sorted lists. The values survive JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Iterations, Merge, Role, Stream
from weighbridge.pipeline.ingest.fact import Axis, Fact, Repair
from weighbridge.schemas.enumerations import Ended

Facts = dict[str, Any]


def facts_of(dialect: Dialect) -> Facts:
    """The facts of a dialect."""
    return {
        "name": dialect.name,
        "apis": list(dialect.apis),
        "providers": list(dialect.providers),
        "source": dialect.source,
        "containers": list(dialect.containers),
        "roles": [[path, str(role)] for path, role in dialect.roles.items()],
        "axes": [[str(axis), list(values)] for axis, values in dialect.axes.items()],
        "absent": [[provider, _absent_facts(absent)] for provider, absent in dialect.absent.items()],
        "stream": _stream_facts(dialect.stream),
        "itemised": dialect.itemised,
        "direct": dialect.direct,
        "open": dialect.open,
        "rare": [[str(axis), list(values)] for axis, values in dialect.rare.items()],
        "children": list(dialect.children),
        "breakdown": dialect.breakdown,
        "iterations": dialect.iterations and [dialect.iterations.path, list(dialect.iterations.shown)],
        "guessed": _sorted(dialect.guessed),
        "facts": [fact.to_dict() for fact in dialect.facts],
        "known": dialect.known,
        "cached_grain": dialect.cached_grain,
        "reasoning_grain": dialect.reasoning_grain,
        "repairs": _sorted(dialect.repairs),
    }


def dialect_of(facts: Facts) -> Dialect:
    """The dialect with these facts.

    Raises:
        KeyError, TypeError, ValueError: they are not the facts of a dialect.
    """
    return Dialect(
        name=facts["name"],
        apis=tuple(facts["apis"]),
        providers=tuple(facts["providers"]),
        source=facts["source"],
        containers=tuple(facts["containers"]),
        roles={path: Role(role) for path, role in facts["roles"]},
        axes={Axis(axis): tuple(values) for axis, values in facts["axes"]},
        absent={provider: _absent_of(absent) for provider, absent in facts["absent"]},
        stream=_stream_of(facts["stream"]),
        itemised=facts["itemised"],
        direct=facts["direct"],
        # What follows came later: facts that were kept before do not have it.
        open=facts.get("open", False),
        rare={Axis(axis): tuple(values) for axis, values in facts.get("rare", [])},
        children=tuple(facts.get("children", [])),
        breakdown=facts.get("breakdown", False),
        iterations=_iterations_of(facts.get("iterations")),
        guessed=frozenset(Axis(axis) for axis in facts.get("guessed", [])),
        facts=tuple(Fact.of(row) for row in facts.get("facts", [])),
        known=facts.get("known", True),
        cached_grain=facts.get("cached_grain"),
        reasoning_grain=facts.get("reasoning_grain"),
        repairs=frozenset(Repair(name) for name in facts.get("repairs", [])),
    )


def _iterations_of(facts: list[Any] | None) -> Iterations | None:
    return None if facts is None else Iterations(facts[0], tuple(facts[1]))


def _absent_facts(absent: Absent) -> Facts:
    return {
        "zero": _sorted(absent.zero),
        "zero_beside": [[str(role), _sorted(beside)] for role, beside in absent.zero_beside.items()],
        **({"whole": True} if absent.whole else {}),
    }


def _absent_of(facts: Facts) -> Absent:
    beside = {Role(role): _roles(others) for role, others in facts["zero_beside"]}
    return Absent(_roles(facts["zero"]), beside, whole=facts.get("whole", False))


def _stream_facts(stream: Stream) -> Facts:
    return {
        "merge": str(stream.merge),
        "opening": _sorted(stream.opening),
        "revising": _sorted(stream.revising),
        "closing": [[event, str(ended)] for event, ended in _pairs(stream.closing)],
        "finish": [list(pair) for pair in stream.finish],
        "ending": _sorted(stream.ending),
        "unclosed": str(stream.unclosed),
    }


def _stream_of(facts: Facts) -> Stream:
    return Stream(
        merge=Merge(facts["merge"]),
        opening=frozenset(facts["opening"]),
        revising=frozenset(facts["revising"]),
        closing={event: Ended(ended) for event, ended in facts["closing"]},
        finish=tuple((held, name) for held, name in facts["finish"]),
        ending=frozenset(facts.get("ending", [])),
        unclosed=Ended(facts["unclosed"]),
    )


def _roles(names: Iterable[str]) -> frozenset[Role]:
    return frozenset(Role(name) for name in names)


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(str(name) for name in names)


def _pairs(mapping: Mapping[str, Ended]) -> list[tuple[str, Ended]]:
    return list(mapping.items())
