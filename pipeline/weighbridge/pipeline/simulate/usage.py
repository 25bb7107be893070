"""What the APIs report, in the form each of them has: raw leaves, as `flatten_body` gives them for a real body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weighbridge.pipeline.simulate import faults, world
from weighbridge.pipeline.simulate.lengths import Lengths
from weighbridge.pipeline.simulate.traffic import SUCCEEDED, Traffic
from weighbridge.pipeline.simulate.world import Ints
from weighbridge.schemas.enumerations import ReportPart


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a report's part.

    Attributes:
        name: for people.
        kind: which part of an answer has it.
        leaves: path -> the name of its figure (see `figures`), or `=text` for an enumeration.
    """

    name: str
    kind: ReportPart
    leaves: dict[str, str]

    @property
    def paths(self) -> list[str]:
        """The paths, in the order in which leaves are stored."""
        return sorted(self.leaves)

    @property
    def texts(self) -> list[str | None] | None:
        """The text of each leaf, null where it is an integer; null where no leaf is a text."""
        texts = [self.leaves[path][1:] if self.leaves[path].startswith("=") else None for path in self.paths]
        return texts if any(texts) else None


def _under(container: str, leaves: dict[str, str]) -> dict[str, str]:
    return {f"{container}.{path}": figure for path, figure in leaves.items()}


_CHAT = {
    "prompt_tokens": "input",
    "completion_tokens": "output",
    "total_tokens": "total",
    "prompt_tokens_details.cached_tokens": "cached",
    "prompt_tokens_details.audio_tokens": "zero",
    "completion_tokens_details.reasoning_tokens": "reasoning",
    "completion_tokens_details.audio_tokens": "zero",
    "completion_tokens_details.accepted_prediction_tokens": "zero",
    "completion_tokens_details.rejected_prediction_tokens": "zero",
}
_RESPONSES = {
    "input_tokens": "input",
    "input_tokens_details.cached_tokens": "cached",
    "output_tokens": "output",
    "output_tokens_details.reasoning_tokens": "reasoning",
    "total_tokens": "total",
}
_ANTHROPIC_DELTA = {
    "input_tokens": "input",
    "cache_creation_input_tokens": "written",
    "cache_read_input_tokens": "cached",
    "output_tokens": "output",
}
_ANTHROPIC = {
    **_ANTHROPIC_DELTA,
    "cache_creation.ephemeral_5m_input_tokens": "written_5m",
    "cache_creation.ephemeral_1h_input_tokens": "written_1h",
    "service_tier": "=standard",
}


def _gemini(*, cached: bool, thinks: bool) -> dict[str, str]:
    """Gemini leaves zeros out."""
    return {
        "promptTokenCount": "input",
        "promptTokensDetails[TEXT].tokenCount": "input",
        "candidatesTokenCount": "output",
        "totalTokenCount": "total",
        **({"cachedContentTokenCount": "cached", "cacheTokensDetails[TEXT].tokenCount": "cached"} if cached else {}),
        **({"thoughtsTokenCount": "reasoning"} if thinks else {}),
    }


FORMS: tuple[Form, ...] = (
    Form("openai chat", ReportPart.WHOLE, _under("usage", _CHAT)),
    Form("openai chat, closing chunk", ReportPart.FINAL, _under("usage", _CHAT)),
    Form("openai responses", ReportPart.WHOLE, _under("usage", _RESPONSES)),
    Form("openai responses, response.completed", ReportPart.FINAL, _under("response.usage", _RESPONSES)),
    Form("anthropic", ReportPart.WHOLE, _under("usage", _ANTHROPIC)),
    Form("anthropic, message_start", ReportPart.START, _under("message.usage", {**_ANTHROPIC, "output_tokens": "one"})),
    Form("anthropic, message_delta", ReportPart.DELTA, _under("usage", _ANTHROPIC_DELTA)),
    *(
        Form(f"gemini{', last chunk' if kind is ReportPart.FINAL else ''}", kind, _under("usageMetadata", leaves))
        for leaves in (_gemini(cached=c, thinks=t) for c in (False, True) for t in (False, True))
        for kind in (ReportPart.WHOLE, ReportPart.FINAL)
    ),
)
_ANTHROPIC_START, _ANTHROPIC_DELTA_FORM, _GEMINI_FORMS = 5, 6, 7
_FIRST_FORM = {"openai_chat": 0, "openai_responses": 2, "anthropic_messages": 4, "gemini_generate_content": 7}


def figures(traffic: Traffic, tokens: Lengths, fault: Ints) -> dict[str, Ints]:
    """The figures every attempt's report holds, faults included. `input` and `output` are what the API calls so."""
    anthropic, google = _by(traffic, "anthropic"), _by(traffic, "google")
    written = tokens.written_5m + tokens.written_1h
    entered = tokens.prompt - np.where(anthropic, tokens.cached + written, 0)
    entered = entered - np.where(fault == faults.OPENAI_CACHE, tokens.cached, 0)
    entered = entered + np.where(fault == faults.ANTHROPIC_CACHE, tokens.cached, 0)
    left = tokens.output - np.where(google | (fault == faults.REASONING), tokens.reasoning, 0)
    left = left - np.where(fault == faults.END, tokens.end, 0)
    return {
        "input": entered,
        "output": left,
        "cached": tokens.cached,
        "reasoning": tokens.reasoning,
        "written": written,
        "written_5m": tokens.written_5m,
        "written_1h": tokens.written_1h,
        "total": entered + left + np.where(google, tokens.reasoning, 0),
        "one": np.ones_like(written),
        "zero": np.zeros_like(written),
    }


def _by(traffic: Traffic, provider: str) -> world.Mask:
    return np.array([model.provider == provider for model in world.MODELS])[traffic.model]


@dataclass(slots=True)
class Parts:
    """The parts of all reports, in the order of (attempt, report, part).

    Attributes:
        attempt: index of the attempt.
        report, part: numbers of the key.
        form: index into FORMS.
    """

    attempt: Ints
    report: Ints
    part: Ints
    form: Ints


def parts(rng: np.random.Generator, traffic: Traffic, tokens: Lengths, fault: Ints) -> Parts:
    """Which parts were reported, and in which form."""
    reported = np.flatnonzero((traffic.status == SUCCEEDED) & (fault != faults.MISSING))
    form = np.array([_FIRST_FORM[model.api] for model in world.MODELS])[traffic.model] + _variant(traffic, tokens)
    # A stream of Anthropic opens with counts and closes with them; many recorders keep the merged ones only.
    anthropic = _by(traffic, "anthropic")
    two = anthropic & tokens.stream & (rng.random(traffic.rows) < 0.4)
    first = np.where(two, _ANTHROPIC_START, form)
    second = reported[two[reported]]
    once = Parts(
        np.concatenate([reported, second]),
        np.zeros(len(reported) + len(second), np.int64),
        np.repeat(np.array([0, 1]), [len(reported), len(second)]),
        np.concatenate([first[reported], np.full(len(second), _ANTHROPIC_DELTA_FORM)]),
    )
    return _sorted(_with_duplicates(once, fault))


def _variant(traffic: Traffic, tokens: Lengths) -> Ints:
    """How far the form of an attempt is from the first one of its API."""
    stream = tokens.stream.astype(np.int64)
    gemini = 4 * (tokens.cached > 0) + 2 * (tokens.reasoning > 0) + stream
    return np.where(_by(traffic, "google"), gemini, np.where(_by(traffic, "anthropic"), 0, stream))


def _with_duplicates(once: Parts, fault: Ints) -> Parts:
    again = np.flatnonzero(fault[once.attempt] == faults.DUPLICATE)
    return Parts(
        np.concatenate([once.attempt, once.attempt[again]]),
        np.concatenate([once.report, once.report[again] + 1]),
        np.concatenate([once.part, once.part[again]]),
        np.concatenate([once.form, once.form[again]]),
    )


def _sorted(found: Parts) -> Parts:
    order = np.lexsort((found.part, found.report, found.attempt))
    return Parts(found.attempt[order], found.report[order], found.part[order], found.form[order])


def leaf_columns(found: Parts, figure: dict[str, Ints]) -> dict[str, pa.Array]:
    """The columns `leaf_shape`, `leaf_integers`, `leaf_texts` and `part_kind` of these parts."""
    sizes = np.array([len(form.leaves) for form in FORMS])
    offsets = np.concatenate([[0], np.cumsum(sizes[found.form])])
    values = np.zeros(offsets[-1], np.int64)
    text = np.zeros(offsets[-1], bool)
    for index, form in enumerate(FORMS):
        rows = np.flatnonzero(found.form == index)
        for place, path in enumerate(form.paths):
            name, at = form.leaves[path], offsets[rows] + place
            if name.startswith("="):
                text[at] = True
            else:
                values[at] = figure[name][found.attempt[rows]]
    form_of_row = pa.array(found.form)
    return {
        "part_kind": pa.array([str(form.kind) for form in FORMS]).take(form_of_row),
        "leaf_shape": pa.array([" ".join(form.paths) for form in FORMS]).take(form_of_row),
        "leaf_integers": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, mask=text)),
        "leaf_texts": pa.array([form.texts for form in FORMS], pa.list_(pa.string())).take(form_of_row),
    }
