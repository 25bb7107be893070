"""The model of the demonstration: a tiny Llama with random weights, and a byte-level tokenizer made on the spot.

Nothing is fetched, and every process that makes it has the same one. It speaks no language: it draws words. It draws
whole words only, because then its answers, tokenised again, give the ids they were made of; freely sampled bytes would
not, and a recount of them could only be near.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

MODEL: Final = "tiny-random-llama"
SEED: Final = 7
END: Final = 0
PAD: Final = 1
_LENGTH: Final = 2048
_SPECIAL: Final = ("<|end|>", "<|pad|>", "<|user|>", "<|system|>", "<|assistant|>")
_WORDS: Final = (
    " the scale weighs what was really served and compares it with the note that came along; a lorry drives on, "
    "a lorry drives off, and the difference is what was delivered. tokens are counted once, never guessed. "
)
_TEMPLATE: Final = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SPACE: Final = "Ġ"  # how a byte-level vocabulary writes the blank before a word


def tiny_tokenizer() -> Any:
    """The tokenizer with its chat template: the words above, and bytes for everything else."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - where it is used
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - as above

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([_WORDS] * 4, trainer)
    named = {"eos_token": _SPECIAL[END], "pad_token": _SPECIAL[PAD]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, padding_side="left", **named)
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def unspoken(tokenizer: Any) -> list[int]:
    """The ids the model never draws: all but whole words and the end token."""
    words = {_SPACE + word.strip(";,.") for word in _WORDS.split()}
    return sorted(number for token, number in tokenizer.get_vocab().items() if token not in words and number != END)


def tiny_model(tokenizer: Any) -> Any:
    """The model, with its habits in its generation settings: it samples, and it draws whole words."""
    import torch  # noqa: PLC0415 - as above
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - as above

    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=_LENGTH, eos_token_id=END, pad_token_id=PAD, bos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    habits = model.generation_config
    habits.do_sample, habits.temperature, habits.top_k = True, 1.0, 0
    habits.suppress_tokens = unspoken(tokenizer)
    return model


def save(folder: Path) -> None:
    """Write model and tokenizer as a folder that servers load."""
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer).save_pretrained(folder)
