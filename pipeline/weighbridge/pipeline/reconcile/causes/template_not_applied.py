"""The recount was made of the bare text, while usage counts the prompt with its chat template, or the other way round.

The amount is the number of tokens the template adds, where the recount says so. Where it does not, it is learnt from
the attempts of the same provider, model and template: so many tokens per request and so many per message, in whole
numbers, if at least three attempts and a strict majority fit exactly (`template.learnt`). Where too few attempts teach
anything, what a provider published about its template is tried (`template.published`). Recounts only (grade G3).

Worked example (input):

    grade  observed  reported  recount_template  recount_has_template  learnt_template | template_not_applied
       G3        28        36                 8                 false                - |                    8
       G3        36        28                 8                  true                - |                   -8
       G3        28        36                 -                 false                8 |                    8
       G3        28        36                 -                 false                - |                    -
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.explain.template import published
from weighbridge.pipeline.reconcile.frames import first_of, tokens
from weighbridge.schemas.enumerations import Direction, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    size, inside = nw.col("recount_template"), nw.col("recount_has_template")
    added = nw.coalesce(size, nw.col("learnt_template"))
    amount = first_of([(~inside, added), (inside, tokens(0) - size)], tokens())
    bare = ~inside.fill_null(value=True) & added.is_null()
    known = (nw.when(bare).then(told) for told in published())
    return tuple(Candidate(each, TokenClass.INPUT_UNCACHED) for each in (amount, *known))


CAUSE = Cause(
    code="template_not_applied",
    title="Chat template counted on one side only",
    directions=(Direction.INPUT,),
    cure="Recount the prompt with the chat template the server applies (same fingerprint), not its bare text.",
    structural=False,
    order=70,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
