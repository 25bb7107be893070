"""One contract over every dialect that the folder holds; a new dialect is held to it by being there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.ingest.dialect import EVIDENCE, Dialect, Role
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for, spoken, stream_of
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.pipeline.ingest.leaf_paths import is_leaf_path
from weighbridge.pipeline.ingest.outcome import Flag, flag_names
from weighbridge.pipeline.ingest.plan import plan_of
from weighbridge.pipeline.ingest.reading import read_usage
from weighbridge.schemas.leaves import BARE, CONTAINERS, ENUMERATED

ROOT = Path(__file__).resolve().parents[3]
DIALECTS = list(all_dialects().values())
NAMES = [dialect.name for dialect in DIALECTS]
LABEL = re.compile(r"\[([^\]]*)\]")
# Of answers; logs of other systems are taken apart by their importers.
ANSWERS = [d for d in DIALECTS if d.containers[0] in (*CONTAINERS, "meta") and (d.direct or d.providers != ("any",))]
ANSWERED = [dialect.name for dialect in ANSWERS]


def speaker(dialect: Dialect) -> str:
    return "anyone" if "any" in dialect.providers else dialect.providers[0]


def nested(path: str, value: object) -> dict[str, Any]:
    """The object whose leaf at `path` is `value`; a labelled list has one row with that label."""
    head, _, rest = path.partition(".")
    inner: object = nested(rest, value) if rest else value
    label = LABEL.search(head)
    if label is None:
        return {head: inner}
    told = "message" if label[1] == "*" else label[1]
    discriminator = next(name for name in ("modality", "type", "ttl") if told in ENUMERATED[name])
    row = {discriminator: told, **(inner if isinstance(inner, dict) else {})}
    return {head[: label.start()]: [row]}


def answer_with(dialect: Dialect, path: str, value: object) -> dict[str, Any]:
    """The part of a record in which an answer of this API has its leaf at `path`."""
    head, _, rest = path.partition(".")
    if head == "header":
        return {"response": {}, "headers": {rest: value}}
    first = LABEL.sub("", head)
    if first in BARE or first in CONTAINERS:
        return {"response": nested(path, value)}
    whole = "usage" if dialect.containers[0] != "meta" else "response"
    return {whole: nested(path if whole == "usage" else f"meta.{path}", value)}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    out = dict(one)
    for name, value in other.items():
        out[name] = merged(out[name], value) if isinstance(value, dict) and name in out else value
    return out


def test_the_folder_holds_these_families_and_our_own_vocabulary() -> None:
    assert set(NAMES) >= {
        "anthropic_messages",
        "bedrock_converse",
        "bedrock_invoke_model",
        "cohere_chat",
        "cohere_embed",
        "count_tokens",
        "gemini_cached_contents",
        "gemini_embeddings",
        "gemini_interactions",
        "gemini_live",
        "llamacpp_completion",
        "ollama_embed",
        "ollama_native",
        "tgi_generate",
        "voyage_embeddings",
        "writer_chat",
        "declared",
        "gemini_generate_content",
        "openai_assistants",
        "openai_audio",
        "openai_batches",
        "openai_chat",
        "openai_embeddings",
        "openai_images",
        "openai_realtime",
        "openai_responses",
    }


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_facts_are_complete(dialect: Dialect) -> None:
    assert all_dialects()[dialect.name] is dialect
    assert dialect.apis[0] == dialect.name
    assert dialect.source.startswith("https://") or (ROOT / dialect.source).is_file()
    assert "any" in dialect.absent
    assert all(isinstance(role, Role) for role in dialect.roles.values())
    assert set(dialect.axes) <= set(Axis)
    assert len(set(dialect.readings)) == len(dialect.readings)
    declared = dialect.readings[0]
    assert all(getattr(declared, axis) is values[0] for axis, values in dialect.axes.items())
    for absent in dialect.absent.values():
        assert not absent.zero & absent.zero_beside.keys(), "a role is either zero or zero beside others"
        assert not (absent.zero | absent.zero_beside.keys()) & EVIDENCE


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_reasoning_that_nobody_shows_is_unknown_and_not_zero(dialect: Dialect) -> None:
    """An output whose reasoning has no path would otherwise be taken for text, silently."""
    mapped = set(dialect.roles.values())
    if Role.OUTPUT in mapped and Role.REASONING not in mapped:
        assert not any(Role.REASONING in rule.zero and Role.OUTPUT not in rule.zero for rule in dialect.absent.values())


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if not d.direct], ids=lambda dialect: dialect.name)
def test_every_path_is_one_that_leaves_may_have(dialect: Dialect) -> None:
    """An unknown key would arrive as a hash and its role would never be found. Our own names need no allow-list."""
    for path in dialect.roles:
        shown = path.replace("[*]", "[0]")
        assert any(is_leaf_path(f"{container}.{shown}" if container else shown) for container in dialect.containers)


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_every_path_is_found_in_every_container(dialect: Dialect) -> None:
    for path, role in dialect.roles.items():
        if role in EVIDENCE:
            continue
        for container in dialect.containers:
            shown = path.replace("[*]", "[message#2]")
            plan = plan_of(dialect, f"{container}.{shown}" if container else shown)
            assert plan.sources == ((role, ((0,),)),)


@pytest.mark.parametrize("dialect", ANSWERS, ids=ANSWERED)
def test_every_path_is_read_from_an_answer_and_none_is_unmapped(dialect: Dialect) -> None:
    for path in dialect.roles:
        told = answer_with(dialect, path, 0)
        reading = read_usage({"provider": speaker(dialect), "api": dialect.apis[0], **told})
        assert reading.dialect == dialect.name
        assert "unmapped_leaves" not in reading.flags, path
        assert "unreadable" not in reading.flags, path
        assert reading.leaves, path


@pytest.mark.parametrize("dialect", ANSWERS, ids=ANSWERED)
def test_reading_again_from_the_kept_leaves_changes_nothing(dialect: Dialect) -> None:
    told: dict[str, Any] = {}
    paths = [path for path, role in dialect.roles.items() if role not in EVIDENCE and "[" not in path]
    for number, path in enumerate(paths):
        told = merged(told, answer_with(dialect, path, number + 1))
    if len(told) > 1:  # what stands in several places of an answer stands in its body
        told = {"response": {**told.get("response", {}), "usage": told.get("usage")}, "headers": told.get("headers")}
    record = {"provider": speaker(dialect), "api": dialect.name, "model": "m", **told}
    first, again = read_usage(record), read_usage(record)
    assert first == again
    assert first.to_dict() == again.to_dict()
    kept = [leaf.path for leaf in first.leaves]
    assert kept == sorted(kept)
    assert len(kept) == len(set(kept)) == len(paths)


def test_no_two_dialects_claim_the_same_speaker() -> None:
    claimed = [(api, provider) for d in DIALECTS for api in d.apis for provider in d.providers]
    assert len(claimed) == len(set(claimed))
    own = next(d for d in DIALECTS if d.providers == ("any",))
    assert not any(api in own.apis for d in DIALECTS if d is not own for api in d.apis)


@pytest.mark.parametrize(
    ("provider", "api", "name"),
    [
        ("openai", "chat", "openai_chat"),
        ("azure", "chat.completions", "openai_chat"),
        ("azure", "responses", "openai_responses"),
        ("anthropic", "messages", "anthropic_messages"),
        ("google", "generateContent", "gemini_generate_content"),
        ("google", "generate_content", "gemini_generate_content"),
        ("whoever", "declared", "declared"),
        ("vertex", "messages", "anthropic_messages"),
        ("nobody.example", "converse", "bedrock_converse"),
        ("ollama", "chat", "ollama_native"),
        ("ollama", "openai_chat", "openai_chat"),
        ("cohere", "embeddings", "cohere_embed"),
        ("voyage", "embeddings", "voyage_embeddings"),
        ("vertex", "embeddings", "gemini_embeddings"),
        ("bedrock", "count_tokens", "count_tokens"),
    ],
)
def test_dialects_are_found_by_provider_and_api(provider: str, api: str, name: str) -> None:
    found = dialect_for(provider, api)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("provider", "api"), [("google", "cohere_chat"), (None, "telepathy"), ("openai", None), (None, None)]
)
def test_any_other_speaker_has_no_dialect(provider: str | None, api: str | None) -> None:
    assert dialect_for(provider, api) is None


def test_streams_are_told_apart_by_api_alone() -> None:
    assert spoken("messages") is all_dialects()["anthropic_messages"]
    assert stream_of("messages").opening == {"message_start"}
    assert stream_of("unheard_of").opening == frozenset()


def test_an_unknown_number_inside_usage_is_noticed() -> None:
    reading = read_usage({"provider": "openai", "api": "chat", "usage": {"prompt_tokens": 3, "telepathy_tokens": 5}})
    assert "unmapped_leaves" in reading.flags
    assert next(leaf.path for leaf in reading.leaves).startswith("usage.h_")


def test_flags_are_words_in_alphabetical_order() -> None:
    assert flag_names(Flag.USAGE_MISSING | Flag.ERROR_AFTER_USAGE) == ("error_after_usage", "usage_missing")


def test_every_flag_and_every_dialect_is_explained() -> None:
    page = (ROOT / "docs" / "reading-usage.md").read_text(encoding="utf-8")
    assert [flag for flag in flag_names(sum(Flag)) if f"`{flag}`" not in page] == []
    assert [name for name in NAMES if f"`{name}`" not in page] == []
