"""Key providers: private files, one winner of a race, later versions, and destruction for good."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.schemas.keys import KEY_BYTES, KeyCommand, KeyEnvironment, KeyFolder, KeyScope, KeyUnavailableError

SCOPE = KeyScope("t_0123456789abcdef", 3, "2026-01")
FIRST = "t_0123456789abcdef.3.2026-01.ids.1"
SECOND = "t_0123456789abcdef.3.2026-01.ids.2"


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def test_a_key_is_made_once_in_private_files(folder: KeyFolder) -> None:
    name, key = folder.current(SCOPE)
    assert (name, len(key)) == (FIRST, KEY_BYTES)
    assert stat.S_IMODE(folder.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.folder.iterdir()} == {0o600}
    assert [path.name for path in folder.folder.iterdir()] == [FIRST]
    assert KeyFolder(folder.folder).current(SCOPE) == (name, key)
    assert folder.get(name) == key


def test_scopes_have_keys_of_their_own(folder: KeyFolder) -> None:
    scopes = [SCOPE, KeyScope(SCOPE.tenant, 33, SCOPE.month), KeyScope(SCOPE.tenant, 3, "2026-02"),
              KeyScope("unassigned", 3, SCOPE.month), KeyScope(SCOPE.tenant, 3, SCOPE.month, "traces")]  # fmt: skip
    made = [folder.current(scope) for scope in scopes]
    assert len({name for name, _ in made}) == len({key for _, key in made}) == len(scopes)


RACE = """
import sys
from pathlib import Path
from weighbridge.schemas.keys import KeyFolder, KeyScope
folder = KeyFolder(Path(sys.argv[1]))
sys.stdin.read(1)
for bucket in range(60):
    name, key = folder.current(KeyScope("unassigned", bucket, "2026-01"))
    print(name, key.hex())
"""


def test_two_processes_that_race_get_the_same_keys(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path / "keys")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("x")
        racer.stdin.flush()
    told = [racer.communicate()[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert told[0] == told[1]
    assert len(told[0].splitlines()) == 60
    assert len(list((tmp_path / "keys").iterdir())) == 60


def test_rotation_gives_new_data_a_new_key_and_keeps_the_old(folder: KeyFolder) -> None:
    elsewhere = KeyFolder(folder.folder)
    _, old = elsewhere.current(SCOPE)
    assert folder.rotate(SCOPE) == SECOND
    name, new = folder.current(SCOPE)
    assert name == SECOND
    assert new != old
    assert folder.get(FIRST) == old
    assert elsewhere.current(SCOPE) == (SECOND, new), "another process must see it too"


def test_a_destroyed_key_is_gone_and_its_name_is_not_given_again(folder: KeyFolder) -> None:
    elsewhere = KeyFolder(folder.folder)
    name, key = folder.current(SCOPE)
    assert elsewhere.current(SCOPE) == (name, key)
    assert folder.destroy(name) is True
    assert folder.destroy(name) is False
    with pytest.raises(KeyUnavailableError, match="destroyed, or never here"):
        elsewhere.get(name)
    assert not any(key in path.read_bytes() for path in folder.folder.iterdir())
    again, other = elsewhere.current(SCOPE)
    assert again == SECOND
    assert other != key


def test_keys_are_listed_and_so_are_those_that_were_destroyed(folder: KeyFolder) -> None:
    assert (folder.names(), folder.destroyed()) == ([], [])
    folder.current(SCOPE)
    folder.rotate(SCOPE)
    folder.current(KeyScope("unassigned", 0, "2025-12"))
    (folder.folder / "notes.txt").write_text("")
    assert folder.names() == [FIRST, SECOND, "unassigned.0.2025-12.ids.1"]
    folder.destroy(FIRST)
    assert (folder.names(), folder.destroyed()) == ([SECOND, "unassigned.0.2025-12.ids.1"], [FIRST])


def test_what_a_killed_process_left_of_a_key_goes_with_it(folder: KeyFolder) -> None:
    name, _ = folder.current(SCOPE)
    os.link(folder.folder / name, folder.folder / f".{name}.4711.1")
    assert folder.destroy(name) is True
    assert [path.name for path in folder.folder.iterdir()] == [name + ".destroyed"]


DESTROY = """
import os, signal, sys
from pathlib import Path
from weighbridge.schemas import keys
steps = iter(range(int(sys.argv[2])))
def step(call):
    def counted(*arguments, **named):
        if next(steps, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return counted
for name in ("touch", "unlink", "open"):
    setattr(Path, name, step(getattr(Path, name)))
keys.os.fsync = step(os.fsync)
keys.KeyFolder(Path(sys.argv[1])).destroy(sys.argv[3])
"""


@pytest.mark.parametrize("steps", range(8))
def test_a_destruction_that_is_killed_is_finished_by_another(folder: KeyFolder, steps: int) -> None:
    name, _ = folder.current(SCOPE)
    ran = subprocess.run([sys.executable, "-c", DESTROY, folder.folder, str(steps), name], check=False)
    assert ran.returncode == (-9 if steps < 6 else 0)
    folder.destroy(name)
    assert [path.name for path in folder.folder.iterdir()] == [name + ".destroyed"]
    assert folder.current(SCOPE)[0] == SECOND


def test_a_name_says_what_its_key_covers() -> None:
    assert KeyScope.of(FIRST) == SCOPE
    with pytest.raises(ValueError, match="no key name"):
        KeyScope.of("notes.txt")


@pytest.mark.parametrize("name", ["../../etc/passwd", "", ".hidden", "a.b", FIRST + "/x", "t.1.2026-01.ids.1\n"])
def test_what_is_no_key_name_never_becomes_a_path(folder: KeyFolder, name: str) -> None:
    with pytest.raises(KeyUnavailableError, match="no key name"):
        folder.get(name)
    assert folder.destroy(name) is False


def test_a_key_file_of_another_size_is_refused_without_showing_it(folder: KeyFolder) -> None:
    name, _ = folder.current(SCOPE)
    (folder.folder / name).write_bytes(b"secret")
    with pytest.raises(KeyUnavailableError, match="has 6 bytes instead of 32") as told:
        folder.get(name)
    assert "secret" not in str(told.value)


def test_a_folder_that_cannot_be_made_gives_no_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyUnavailableError, match="key folder cannot be used"):
        KeyFolder(tmp_path / "file" / "keys").current(SCOPE)


SERVICE = """
import hashlib, sys
from pathlib import Path
home, verb, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
(home / "calls").open("a").write(verb + "\\n")
name = what + ".4" if verb == "current" else what
if (home / ("gone " + name)).exists():
    sys.exit(3)
digits = hashlib.sha256(name.encode()).hexdigest()
if verb == "current":
    print(name, digits)
elif verb == "get":
    print(digits)
elif verb == "list":
    print("t_0123456789abcdef.3.2026-01.ids.4")
else:
    (home / ("gone " + name)).touch()
"""


def test_a_command_gives_keys_and_is_not_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    keys = KeyCommand([sys.executable, str(tmp_path / "service.py"), str(tmp_path)])
    name, key = keys.current(SCOPE)
    assert keys.current(SCOPE) == (name, key)
    assert name == FIRST[:-1] + "4"
    assert keys.get(name) == key
    assert keys.names() == [name]
    assert keys.destroy(name) is True
    with pytest.raises(KeyUnavailableError, match="`current` ended with exit code 3"):
        keys.current(SCOPE)
    assert (tmp_path / "calls").read_text().split() == ["current", "get", "list", "destroy", "current"]


def test_a_command_need_not_know_how_to_list() -> None:
    assert KeyCommand([sys.executable, "-c", "raise SystemExit(2)"]).names() is None


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("print('nothing')", "must print a key name"),
        (f"print('{FIRST}', 'ff')", "no 64 hexadecimal digits"),
        ("raise SystemExit(9)", "exit code 9"),
        ("import time; time.sleep(60)", "failed: TimeoutExpired"),
    ],
)
def test_a_command_that_does_not_answer_gives_no_key(script: str, message: str) -> None:
    keys = KeyCommand([sys.executable, "-c", script], timeout_s=0.5)
    with pytest.raises(KeyUnavailableError, match=message):
        keys.current(SCOPE)


def test_a_command_that_is_not_there_gives_no_key() -> None:
    with pytest.raises(KeyUnavailableError, match="FileNotFoundError"):
        KeyCommand(["/nowhere/key-service"]).get(FIRST)


def test_a_root_key_in_the_environment_gives_every_name_its_key() -> None:
    keys = KeyEnvironment("ROOT", {"ROOT": "ab" * 32})
    name, key = keys.current(SCOPE)
    assert name == FIRST
    assert len(key) == KEY_BYTES
    assert keys.get(name) == key != keys.get(SECOND)
    assert KeyEnvironment("ROOT", {"ROOT": "ac" * 32}).get(name) != key
    assert (keys.names(), keys.erases) == (None, False)
    with pytest.raises(KeyUnavailableError, match="use a folder"):
        keys.destroy(name)


@pytest.mark.parametrize("value", [None, "", "ab", "zz" * 32])
def test_an_environment_without_a_sound_root_key_gives_none(value: str | None) -> None:
    environment = {} if value is None else {"ROOT": value}
    with pytest.raises(KeyUnavailableError, match="ROOT must hold 64") as told:
        KeyEnvironment("ROOT", environment).current(SCOPE)
    assert "zz" not in str(told.value)


def test_the_folder_is_private_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KeyFolder(tmp_path / "keys").current(SCOPE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys" / FIRST).stat().st_mode) == 0o600
