"""An installation: made once, completed if something is missing, refused with the next step where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.run.home import KEY_FILE, init_home, open_home, read_key
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import key_id

KEY = bytes(range(32))
NOTHING: dict[str, str] = {}


def test_a_new_installation_has_settings_a_private_key_a_lake_and_its_folders(tmp_path: Path) -> None:
    home = init_home(tmp_path / "wb", env=NOTHING)
    assert (home.root / "weighbridge.toml").is_file()
    assert (home.root / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert len(home.key) == 32
    assert home.lake().digests() == {}
    assert home.reports.is_dir()
    assert home.spool.is_dir()
    assert open_home(home.root, env=NOTHING) == home


def test_two_installations_have_different_keys(tmp_path: Path) -> None:
    assert init_home(tmp_path / "a", env=NOTHING).key != init_home(tmp_path / "b", env=NOTHING).key


def test_made_again_it_stays_as_it_is(tmp_path: Path) -> None:
    first = init_home(tmp_path, key=KEY, given={"title": "Tokens of the house"}, env=NOTHING)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert init_home(tmp_path, env=NOTHING) == first
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert first.settings.title == "Tokens of the house"


def test_a_second_key_is_refused(tmp_path: Path) -> None:
    init_home(tmp_path, key=KEY, env=NOTHING)
    with pytest.raises(ConfigError, match="another key"):
        init_home(tmp_path, key=KEY[::-1], env=NOTHING)
    assert read_key(tmp_path / KEY_FILE) == KEY


@pytest.mark.parametrize("size", [15, 65])
def test_a_key_of_the_wrong_size_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(ConfigError, match="16 to 64 bytes"):
        init_home(tmp_path, key=bytes(size), env=NOTHING)


def test_a_file_is_no_installation(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file"):
        init_home(tmp_path / "file", env=NOTHING)
    with pytest.raises(ConfigError, match="weighbridge init"):
        open_home(tmp_path / "nowhere", env=NOTHING)


def test_the_key_is_never_shown(tmp_path: Path) -> None:
    home = init_home(tmp_path, key=KEY, env=NOTHING)
    assert KEY.hex() not in repr(home)
    assert key_id(KEY) in repr(home)


@pytest.mark.parametrize("content", ["", "not hexadecimal", "ab" * 15, "abc" * 15, "ab" * 65])
def test_a_file_without_a_key_is_named_and_not_quoted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="holds no key") as caught:
        read_key(path)
    assert not content or content not in str(caught.value)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    home = init_home(tmp_path, env=NOTHING)
    (tmp_path / KEY_FILE).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_home(home.root, env=NOTHING)


def test_a_lost_key_is_not_replaced_behind_the_lakes_back(tmp_path: Path) -> None:
    home = init_home(tmp_path, env=NOTHING)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(ConfigError, match="restore the key"):
        open_home(home.root, env=NOTHING)
    home.lake().append("segment", SEGMENT)
    with pytest.raises(ConfigError, match="has rows that were written with it"):
        init_home(tmp_path, env=NOTHING)


SEGMENT = pl.DataFrame(
    {
        "segment": ["0" * 64],
        "importer": ["mapped"],
        "name": ["usage.csv"],
        "bytes": [10],
        "end": ["complete"],
        "rows_in": [1],
        "rows_out": [1],
        "rows_quarantined": [0],
        "rows_duplicate": [0],
        "schema_version": [1],
    }
)
