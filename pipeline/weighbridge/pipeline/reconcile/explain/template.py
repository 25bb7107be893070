"""How many tokens a chat template adds, learnt from the gaps themselves: so many a request, so many a message.

Only attempts count whose prompt was recounted without its template, where nothing says how much the template adds.
All such attempts of one provider, model and template form a cell, those without any gap included: a cell in which
most recounts agree with usage has nothing to learn.
"""

from __future__ import annotations

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.frames import Expr, Frame, tokens, within
from weighbridge.pipeline.reconcile.recipe import stacked
from weighbridge.schemas.enumerations import Grade

CELL = ("cell_provider", "cell_model", "cell_template", "cell_counts_messages")
LEAST_ATTEMPTS = 3
# Tokens of the largest gap for each of so many messages still fit into 64 bits.
_MOST_MESSAGES = 2**20
# Providers, tokens a request, tokens a message with its role. OpenAI's cookbook (how to count tokens with tiktoken):
# every reply is primed with 3; a message has 3 around it, 4 in the first chat models, and the token of its role.
PUBLISHED = ((("openai", "azure"), 3, 4), (("openai", "azure"), 3, 5))
NO_POINTS = pl.DataFrame(
    schema=dict.fromkeys(CELL[:3], pl.String())
    | {CELL[3]: pl.Boolean()}
    | dict.fromkeys(("cell_messages", "remaining", "attempts"), pl.Int64())
)


def with_cell(rows: Frame) -> Frame:
    """The rows with the columns of `CELL` and `cell_messages` (0 where the number of messages is unknown)."""
    return rows.with_columns(
        cell_provider=nw.col("provider").fill_null(""),
        cell_model=nw.col("model").fill_null(""),
        cell_template=nw.col("template").fill_null(""),
        cell_counts_messages=~_messages().is_null(),
        cell_messages=_messages().fill_null(0),
    )


def _messages() -> Expr:
    """How many messages a prompt has; a number that no prompt can have is none."""
    return within(nw.col("messages"), _MOST_MESSAGES)


def is_pupil() -> Expr:
    """Whether an input row can teach, and be explained by, what a template adds."""
    return (
        (nw.col("grade") == Grade.G3)
        & nw.col("recount_template").is_null()
        & ~nw.col("recount_has_template").fill_null(value=True)
        & ~nw.col("missing")
        & ~nw.col("remaining").is_null()
    )


def points(rows: Frame) -> Frame:
    """How many attempts of each cell have which gap at which number of messages: all that can be learnt from.

    Args:
        rows: the input direction with `remaining`, the gap less its structural causes.
    """
    pupils = with_cell(rows.filter(is_pupil()))
    return pupils.group_by(*CELL, "cell_messages", "remaining").agg(attempts=nw.len().cast(nw.Int64))


def learnt(seen: Frame) -> Frame:
    """Per cell the whole numbers `per_request` and `per_message` that its gaps agree on.

    Args:
        seen: `points`, of one batch or of several together.

    Returns:
        `CELL`, per_request, per_message, and `fitting` of `pupils` attempts. A cell is there only if at least
        LEAST_ATTEMPTS and a strict majority of its attempts fit exactly, and the template adds anything. A line is
        tried through the commonest gap of each number of messages: if a majority lies on one line, it is among them,
        save where it is commonest at one number of messages only; then a constant is tried. The line that fits most
        attempts is taken, then the one with the smaller share per message.
    """
    place = (*CELL, "cell_messages", "remaining")
    known = seen.group_by(*place).agg(attempts=exact_sum(nw.col("attempts")))
    fits = _fits(known, _lines(_commonest(known)))
    best = fits.with_columns(most=nw.col("fitting").max().over(*CELL)).filter(nw.col("fitting") == nw.col("most"))
    least = best.with_columns(least=nw.col("per_message").min().over(*CELL))
    best = least.filter(nw.col("per_message") == nw.col("least"))
    chosen = best.group_by(*CELL, "per_message", "fitting").agg(per_request=nw.col("per_request").min())
    pupils = known.group_by(*CELL).agg(pupils=exact_sum(nw.col("attempts")))
    majority = (nw.col("fitting") >= LEAST_ATTEMPTS) & (nw.col("fitting") * 2 > nw.col("pupils"))
    adds = nw.col("per_request") + nw.col("per_message") > 0
    agreed = chosen.join(pupils, on=list(CELL), how="inner").filter(majority & adds)
    return agreed.select(*CELL, "per_request", "per_message", "fitting", "pupils")


def with_learnt(rows: Frame, lessons: Frame) -> Frame:
    """The rows with `learnt_template`: what the template adds to this prompt, null where its cell taught nothing."""
    seen = with_cell(rows).join(lessons, on=list(CELL), how="left")
    amount = nw.col("per_request") + nw.col("per_message") * nw.col("cell_messages")
    return seen.with_columns(learnt_template=nw.when(is_pupil() & (amount != 0)).then(amount)).drop(
        *CELL, "cell_messages", "per_request", "per_message", "fitting", "pupils"
    )


def published() -> tuple[Expr, ...]:
    """What the published templates of a provider add to a prompt of so many messages; null for other providers."""
    return tuple(
        nw.when(nw.col("provider").is_in(list(providers))).then(tokens(per_request) + nw.col("messages") * per_message)
        for providers, per_request, per_message in PUBLISHED
    )


def _commonest(points: Frame) -> Frame:
    """Per cell and number of messages its commonest gap; of equally common ones the smallest."""
    place = (*CELL, "cell_messages")
    counted = points.with_columns(most=nw.col("attempts").max().over(*place))
    return (
        counted.filter(nw.col("attempts") == nw.col("most")).group_by(*place).agg(remaining=nw.col("remaining").min())
    )


def _lines(commonest: Frame) -> Frame:
    """The lines worth trying: through two commonest gaps, or constant through one; never with a negative part."""
    other = commonest.rename({"cell_messages": "messages_2", "remaining": "remaining_2"})
    pairs = commonest.join(other, on=list(CELL), how="inner").filter(nw.col("messages_2") > nw.col("cell_messages"))
    step = nw.col("messages_2") - nw.col("cell_messages")
    rise = nw.col("remaining_2") - nw.col("remaining")
    through_two = pairs.filter((rise >= 0) & (rise % step == 0)).with_columns(per_message=rise // step)
    through_two = through_two.with_columns(
        per_request=nw.col("remaining") - nw.col("per_message") * nw.col("cell_messages")
    )
    constant = commonest.with_columns(per_message=tokens(0), per_request=nw.col("remaining"))
    wanted = (*CELL, "per_request", "per_message")
    lines = stacked([through_two.select(*wanted), constant.select(*wanted)])
    return lines.filter(nw.col("per_request") >= 0).unique()


def _fits(points: Frame, lines: Frame) -> Frame:
    """How many attempts of its cell lie exactly on each line."""
    line = nw.col("per_request") + nw.col("per_message") * nw.col("cell_messages")
    hits = nw.when(line == nw.col("remaining")).then(nw.col("attempts")).otherwise(tokens(0))
    return (
        lines.join(points, on=list(CELL), how="inner")
        .with_columns(hits=hits)
        .group_by(*CELL, "per_request", "per_message")
        .agg(fitting=exact_sum(nw.col("hits")))
    )
