"""One process of a tiny model of transformers that runs in two, under the agent. Run by `test_parts_models`.

    pipeline    each process has half of the layers: the first one sends what they make of the tokens to the second,
                which sends back the logits, so that both draw the same tokens
    expert      each process has all of the attention and half of the experts; their outputs are added up

Both run the framework's own `generate()`: what they send each other stands in place of modules of the model.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.parts import Parallel, Part

KEY = bytes(range(32))
LAYERS, EXPERTS, HIDDEN, WORDS, HEADS, NEW = 4, 4, 16, 64, 2, 12
PROMPTS = ([5, 6, 7, 5, 6, 7, 5, 6], [9, 8, 7, 9, 8])
# The second call drafts: what it proposes belongs to no layer, and every process proposes it.
ASKED: tuple[dict[str, Any], ...] = ({}, {"prompt_lookup_num_tokens": 3})
SETTINGS = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW, "pad_token_id": 0}


def model_of(kind: Parallel) -> Any:
    """The whole model, the same in every process: full and sliding attention in turns, or experts."""
    import torch  # noqa: PLC0415 - a process of its own
    import transformers  # noqa: PLC0415 - as above

    torch.manual_seed(1)
    shape = {
        "vocab_size": WORDS, "hidden_size": HIDDEN, "intermediate_size": 32, "num_hidden_layers": LAYERS,
        "num_attention_heads": 4, "num_key_value_heads": HEADS, "max_position_embeddings": 128, "eos_token_id": 2,
        "pad_token_id": 0, "bos_token_id": 1,
    }  # fmt: skip
    if kind is Parallel.EXPERT:
        more = {"num_local_experts": EXPERTS, "num_experts_per_tok": 2, "sliding_window": 6}
        return transformers.MixtralForCausalLM(transformers.MixtralConfig(**shape, **more)).eval()
    kinds = ["sliding_attention", "full_attention"] * (LAYERS // 2)
    window = {"layer_types": kinds, "sliding_window": 6, "use_sliding_window": True}
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**shape, **window)).eval()


def answers(model: Any) -> list[list[int]]:
    """What the model says to every prompt."""
    import torch  # noqa: PLC0415 - as above

    return [
        model.generate(torch.tensor([prompt]), **SETTINGS, **more)[0].tolist()
        for prompt, more in zip(PROMPTS, ASKED, strict=True)
    ]


def make_stage(model: Any, rank: int) -> range:
    """Leave a model the layers of one of two stages, and put the other one where they were; the layers it has."""
    import torch  # noqa: PLC0415 - as above
    import torch.distributed as distributed  # noqa: PLC0415 - as above

    own = range(rank * LAYERS // 2, (rank + 1) * LAYERS // 2)
    model.model.layers = torch.nn.ModuleList(model.model.layers[own.start : own.stop])
    for place, layer in enumerate(model.model.layers):
        layer.self_attn.layer_idx = place
    model.config.num_hidden_layers = len(own)
    model.config.layer_types = model.config.layer_types[own.start : own.stop]

    class FromFirst(torch.nn.Module):  # type: ignore[misc]
        """In place of the embedding: what the first stage made of these tokens."""

        def forward(self, ids: Any) -> Any:
            made = torch.empty(*ids.shape, HIDDEN)
            distributed.recv(made, 0)
            return made

    class ToSecond(torch.nn.Module):  # type: ignore[misc]
        """In place of the last norm."""

        def forward(self, made: Any) -> Any:
            distributed.send(made.contiguous(), 1)
            return made

    class FromSecond(torch.nn.Module):  # type: ignore[misc]
        """In place of the head."""

        def forward(self, made: Any) -> Any:
            logits = torch.empty(*made.shape[:2], WORDS)
            distributed.recv(logits, 1)
            return logits

    if rank:
        model.model.embed_tokens = FromFirst()
        model.lm_head.register_forward_hook(lambda _, __, logits: distributed.send(logits.contiguous(), 0))
    else:
        model.model.norm, model.lm_head = ToSecond(), FromSecond()
    return own


def make_expert_rank(model: Any, rank: int) -> None:
    """Take from a model the experts of the other process, and add up what both make of a token."""
    import torch  # noqa: PLC0415 - as above
    import torch.distributed as distributed  # noqa: PLC0415 - as above

    other = slice((1 - rank) * EXPERTS // 2, (2 - rank) * EXPERTS // 2)
    for layer in model.model.layers:
        with torch.no_grad():
            layer.mlp.experts.gate_up_proj[other] = 0
            layer.mlp.experts.down_proj[other] = 0

        def added(_: Any, __: Any, made: Any) -> Any:
            total = made.clone()
            distributed.all_reduce(total)
            return total

        layer.mlp.experts.register_forward_hook(added)


def main(folder: str, kind: Parallel, rank: int, port: int) -> None:
    """Run the process: every call of the module, watched."""
    import torch  # noqa: PLC0415 - as above
    import torch.distributed as distributed  # noqa: PLC0415 - as above

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model, first = model_of(kind), 0
    with torch.inference_mode():
        if kind is Parallel.PIPELINE:
            first = make_stage(model, rank).start
        else:
            make_expert_rank(model, rank)
        part = Part(kind=kind, rank=rank, world=2, group="start-1", first_layer=first)
        recorder = Recorder.start(
            Path(folder) / "spool", installation="gpu-1", key=KEY, keys=KeyFolder(Path(folder) / "keys"), part=part,
            policy_file=Path(folder) / "policy.json", limits=Limits(keeper_s=3600.0),
        )  # fmt: skip
        with adapter.install(model, recorder, Context(tenant="acme", model_served="tiny"), fingerprint=False):
            said = answers(model)
    (Path(folder) / f"said-{rank}.json").write_text(json.dumps(said), encoding="utf-8")
    distributed.destroy_process_group()
    recorder.close()


if __name__ == "__main__":
    main(sys.argv[1], Parallel(sys.argv[2]), *map(int, sys.argv[3:]))
