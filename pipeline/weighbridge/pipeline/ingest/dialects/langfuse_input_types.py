"""Langfuse observations that tell types of cached tokens, and none of reasoning.

input 200, input_cached_tokens 1,800, output 50   ->   input 2,000, output 50, of it reasoning unknown
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialects import _langfuse

DIALECT = _langfuse.told("langfuse_input_types", cache=True, reasoning=False)
