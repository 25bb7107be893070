"""Langfuse observations that tell types of cached tokens and of reasoning.

input 179, input_cache_read 20, output 35, output_reasoning 64, total 298   ->   all of them beside each other
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialects import _langfuse

DIALECT = _langfuse.told("langfuse", cache=True, reasoning=True)
