"""Usage was asked for and did not come, or came without counts.

a stream with include_usage: true ends without usage     ->  all of what was recounted is missing
"""

from weighbridge.pipeline.probe.cause import Cause

CAUSE = Cause(
    code="usage_missing",
    title="Usage was expected and not reported",
    cure="Have the server send usage (vLLM: --enable-force-include-usage), or a gateway before it pass it on.",
    order=10,
)
