"""The tokenizer and the template a probe counts with, from files of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weighbridge.recount.mistral import MistralRecounter
from weighbridge.recount.recounter import Recounter
from weighbridge.recount.tiktoken import CHAT_COMPLETIONS, TiktokenRecounter
from weighbridge.recount.transformers import TransformersRecounter
from weighbridge.schemas.errors import ConfigError


def recounter(tokenizer: str, template: Path | None) -> Recounter:
    """The recounter of a tokenizer.

    Args:
        tokenizer: a folder with `tokenizer.json` (and its configuration, with a chat template), a `tokenizer.json`, a
            `tekken.json` or SentencePiece model of Mistral's, or `cl100k_base=FILE`, `o200k_base=FILE`. Nothing is
            fetched.
        template: a file with a chat template that goes before the tokenizer's own.

    Raises:
        ConfigError: none of these, or a package for it is missing.
    """
    name, named, file = tokenizer.partition("=")
    path = Path(file if named else tokenizer)
    if not path.exists():
        raise ConfigError(f"there is no tokenizer at {path}; name a file or a folder, nothing is fetched")
    try:
        if named:
            return TiktokenRecounter(path, name, overhead=CHAT_COMPLETIONS)
        if path.is_file() and (path.name.startswith("tekken") or ".model" in path.name):
            return MistralRecounter(path)
        return TransformersRecounter(_fast(path, template))
    except ModuleNotFoundError as error:
        raise ConfigError(f"this tokenizer needs the package {error.name}; install it beside weighbridge") from None
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a library makes of a foreign file
        raise ConfigError(
            f"{path} cannot be used as a tokenizer ({type(error).__name__}); see --help for forms"
        ) from None


def _fast(path: Path, template: Path | None) -> Any:
    """A tokenizer of `transformers`; a bare `tokenizer.json` without a template is counted without one."""
    folder = path if path.is_dir() else path.parent
    described = (folder / "tokenizer_config.json").exists()
    if not described and template is None:
        return path / "tokenizer.json" if path.is_dir() else path
    from transformers import AutoTokenizer, PreTrainedTokenizerFast  # noqa: PLC0415 - a framework, loaded where used

    found: Any = (
        AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        if described
        else PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json" if path.is_dir() else path))
    )
    if template is not None:
        found.chat_template = template.read_text(encoding="utf-8")
    return found
