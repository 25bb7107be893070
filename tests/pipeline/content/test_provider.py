"""Who gives the keys: one place, named in the settings, and told what is wrong with it before any work begins."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.settings import load
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.keys import KeyFolder, KeyScope

SCOPE = KeyScope("t_0123456789abcdef", 3, "2026-01")
SERVICE = "import sys; assert sys.argv[1] == 'get'; print('ab' * 32)"


def provider(folder: Path, **given: object) -> object:
    (folder / "weighbridge.toml").touch()
    return key_provider(load(folder / "weighbridge.toml", env={}, given=given))


def test_none_is_named_by_default(tmp_path: Path) -> None:
    assert provider(tmp_path) is None


def test_a_folder(tmp_path: Path) -> None:
    name, key = KeyFolder(tmp_path / "ids").current(SCOPE)
    found = provider(tmp_path, content_keys=str(tmp_path / "ids"))
    assert isinstance(found, KeyFolder)
    assert found.get(name) == key


def test_a_command(tmp_path: Path) -> None:
    found = provider(tmp_path, content_key_command=[sys.executable, "-c", SERVICE])
    assert found is not None
    assert found.get(SCOPE.name(1)) == b"\xab" * 32  # type: ignore[attr-defined]


def test_a_root_key_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_ROOT_KEY", "cd" * 32)
    found = provider(tmp_path, content_key_variable="WEIGHBRIDGE_ROOT_KEY")
    assert found is not None
    assert len(found.get(SCOPE.name(1))) == 32  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"content_keys": "none"}, "there is no such folder; name the one the agent writes to"),
        ({"content_keys": "open"}, "everybody may look into .*open; run `chmod o-rwx"),
        ({"content_keys": "open", "content_key_command": ["x"]}, "content_keys and content_key_command are set"),
    ],
)
def test_what_cannot_be_used_is_told(
    tmp_path: Path, given: Mapping[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        provider(tmp_path, **given)


def test_without_the_package_that_decrypts_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ConfigError, match=r"weighbridge\[ids\]"):
        provider(tmp_path, content_key_command=["x"])
