"""Langfuse observations that tell a type of reasoning, and none of cached tokens.

input 6, output 2,055, completion_details.reasoning 1,104, total 2,061   ->   the total says: inside the output
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialects import _langfuse

DIALECT = _langfuse.told("langfuse_output_types", cache=False, reasoning=True)
