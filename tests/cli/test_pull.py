"""`weighbridge ingest --from`: what goes together, and what is said where nothing says where the database is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

Run = Any


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the two"),
        (["--from", "litellm", "FILE"], "one of the two"),
        (["--from", "elsewhere"], "litellm is"),
        (["FILE", "--since", "2026-03-01"], "go with --from"),
        (["--from", "litellm", "--importer", "litellm"], "go with files"),
        (["--from", "litellm", "--since", "2026-03-02", "--until", "2026-03-01"], "is before"),
    ],
)
def test_what_does_not_go_together_is_refused(
    weighbridge: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("{}\n")
    ran = weighbridge("ingest", *[str(file) if argument == "FILE" else argument for argument in arguments])
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_a_database_that_nothing_names_and_one_that_is_not_there(
    weighbridge: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    monkeypatch.delenv("LITELLM_DATABASE_URL", raising=False)
    asked = ["ingest", "--from", "litellm", "--since", "2026-03-01", "--until", "2026-03-01", "--config", home]
    ran = weighbridge(*asked)
    assert ran.code == 2
    assert "LITELLM_DATABASE_URL" in ran.err
    secret = tmp_path / "secret"
    secret.write_text("postgresql://reader:s3cret-canary@127.0.0.1:1/litellm\n")
    monkeypatch.setenv("WEIGHBRIDGE_LITELLM_DATABASE_FILE", str(secret))
    ran = weighbridge(*asked)
    assert ran.code != 0
    assert "could not be read" in ran.err
    assert "s3cret" not in ran.out + ran.err
