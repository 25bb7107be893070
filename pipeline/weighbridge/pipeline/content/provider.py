"""Who gives the keys of token ids, as the settings say. Only this room opens anything with them."""

from __future__ import annotations

from weighbridge.pipeline.settings import Settings
from weighbridge.schemas.block import check_cipher
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.keys import KeyCommand, KeyEnvironment, KeyFolder, KeyProvider

KNOBS = ("content_keys", "content_key_command", "content_key_variable")


def key_provider(settings: Settings, *, to_open: bool = True) -> KeyProvider | None:
    """The key provider of an installation, null where none is named.

    Args:
        to_open: blocks are to be opened with the keys; destroying them needs no cipher.

    Raises:
        ConfigError: more than one is named, or the folder of keys is not there or open to everybody.
        CipherMissingError: the package that decrypts is not installed.
    """
    named = [name for name in KNOBS if getattr(settings, name)]
    if not named:
        return None
    if len(named) > 1:
        raise ConfigError(f"{' and '.join(named)} are set; the keys are in one place, so name one of them")
    if to_open:
        check_cipher()
    if settings.content_key_command:
        return KeyCommand(settings.content_key_command)
    if settings.content_key_variable:
        return KeyEnvironment(settings.content_key_variable)
    folder = settings.content_keys
    assert folder is not None
    if not folder.is_dir():
        raise ConfigError(f"content_keys names {folder}, and there is no such folder; name the one the agent writes to")
    if folder.stat().st_mode & 0o007:
        raise ConfigError(f"everybody may look into {folder}; run `chmod o-rwx {folder}`")
    return KeyFolder(folder)
