"""Likeness of meaning, by a small encoder that lies here: of whole answers, and of their words (as BERTScore does it).

Words are compared by the cosine of their vectors, each with its likest partner; precision and recall make an F1. No
inverse document frequency and no rescaling: beside it stands what answers to different prompts come to. Of a
text that is longer than the encoder reads, the beginning counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from weighbridge.schemas.errors import ConfigError


class Read(NamedTuple):
    """A text as the encoder reads it.

    Attributes:
        whole: unit vector of the text; null where it is empty.
        words: unit vectors of its tokens.
    """

    whole: Any
    words: Any


class Alike(NamedTuple):
    """How alike two texts are: the cosine of the whole, and the F1 of their words."""

    semantic: float
    bert_score: float


class Meaning:
    """An encoder from a local folder.

    Args:
        folder: with config.json, weights and tokenizer, such as that of a sentence encoder.

    Raises:
        ConfigError: there is none that can be loaded.
    """

    def __init__(self, folder: str) -> None:
        from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415 - frameworks are imported where they are used

        try:
            if not Path(folder).is_dir():
                raise OSError(folder)
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(
                f"no encoder can be loaded from {folder} ({type(error).__name__}); name a folder with config.json, "
                "weights and tokenizer, or leave meaning out"
            ) from None
        # Encoders of the kind of RoBERTa count places from 2, so their tokenizer knows better; one that knows nothing
        # says a number without meaning.
        places = int(getattr(self._model.config, "max_position_embeddings", 512))
        self._most = min(places, int(self._tokenizer.model_max_length))

    def read(self, text: str) -> Read:
        """Read a text."""
        import torch  # noqa: PLC0415 - as above

        if not text.strip():
            return Read(None, None)
        given = self._tokenizer(text, return_tensors="pt", truncation=True, max_length=self._most)
        with torch.inference_mode():
            states = self._model(**given).last_hidden_state[0]
        whole = torch.nn.functional.normalize(states.mean(0), dim=0)
        # The first and the last are marks of the encoder's own, no words.
        words = states[1:-1] if len(states) > 2 else states
        return Read(whole, torch.nn.functional.normalize(words, dim=-1))


def alike(first: Read, second: Read) -> Alike:
    """Compare two texts; two empty ones are alike, an empty one and another are not."""
    if first.whole is None or second.whole is None:
        same = float(first.whole is second.whole)
        return Alike(same, same)
    table = first.words @ second.words.T
    recall, precision = float(table.max(1).values.mean()), float(table.max(0).values.mean())
    both = recall + precision
    return Alike(float(first.whole @ second.whole), 2 * recall * precision / both if both > 0 else 0.0)
