"""One rank of a tiny tensor-parallel attention layer, under the agent. Run by `test_parts` in two processes.

Each rank holds two of four KV heads. Ranks add their outputs up, draw the same token, and each keeps of every head of
its own the half of the prompt that was attended most: what a press does to a cache that is spread over ranks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Axis, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.parts import Parallel, Part
from weighbridge.schemas.trace import Trace, row_of

KEY = bytes(range(32))
HEADS, WIDTH, PROMPT, CALLS = 4, 8, 16, 3
COUNTS = ("input_computed", "output_computed")
DONE = outcome_word(AttemptStatus.SUCCEEDED)


def kept(torch: Any, call: int, head: int) -> list[int]:
    """The positions a head keeps, and what it adds to the output; the same in every process."""
    torch.manual_seed(100 * call + head)
    query, keys = torch.randn(WIDTH), torch.randn(PROMPT, WIDTH)
    return sorted(torch.topk(keys @ query, PROMPT // 2).indices.tolist())


def main(folder: str, rank: int, world: int, port: int) -> None:
    """Run the rank."""
    import torch  # noqa: PLC0415 - a process of its own
    import torch.distributed as distributed  # noqa: PLC0415

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    own = range(rank * HEADS // world, (rank + 1) * HEADS // world)
    part = Part(kind=Parallel.TENSOR, rank=rank, world=world, group="start-1", first_head=own.start)
    recorder = Recorder.start(
        Path(folder) / "spool", installation="gpu-1", key=KEY, keys=KeyFolder(Path(folder) / "keys"), part=part,
        policy_file=Path(folder) / "policy.json", limits=Limits(keeper_s=3600.0),
    )  # fmt: skip
    binding = recorder.bind(Context(tenant="acme", framework="toy", model_served="tiny"), counts=COUNTS)
    for call in range(CALLS):
        attempt = binding.begin()
        total = torch.zeros(1)
        trace = Trace()
        for place, head in enumerate(own):
            positions = kept(torch, call, head)
            total += sum(positions)
            trace.add(
                Axis.STORE, Operation.KEEP_ONLY, [row_of(positions)], width=PROMPT, phase=Phase.PREFILL, layers=(0, 0),
                heads=(place, place), head_kind=HeadKind.KEY_VALUE, pos_space=PositionSpace.PROMPT,
            )  # fmt: skip
        distributed.all_reduce(total)
        attempt.offer_trace(trace.events)
        attempt.finish(DONE, (PROMPT, int(total) % 7 + 1))
    distributed.destroy_process_group()
    recorder.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
