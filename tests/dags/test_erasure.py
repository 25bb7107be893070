"""After an erasure nothing of the erased is left anywhere, in the home of a scheduler that worked on it neither."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import polars as pl
from tests.dags.conftest import environment, weighbridge

from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.retention.search import Needles, search
from weighbridge.pipeline.run.home import Home, init_home
from weighbridge.pipeline.simulate.simulate import simulate
from weighbridge.pipeline.simulate.world import TENANTS
from weighbridge.schemas.enumerations import AttemptStatus, RunStream
from weighbridge.schemas.identity import AttemptKey, pseudonym
from weighbridge.schemas.keys import KeyFolder

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
NAME, OTHER = TENANTS[0][0], TENANTS[1][0]


def recorded(home: Home, keys: KeyFolder, tenant: str) -> None:
    """Two attempts with token ids, in a sealed segment."""
    recorder = Recorder.start(home.spool, installation=f"gpu-{tenant}", key=home.key, keys=keys)
    binding = recorder.bind(Context(tenant=tenant, task="chat", subject_bucket=5), counts=("output_computed",))
    for _ in range(2):
        attempt = binding.begin()
        runs = [Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, [7, 8, 9])]
        attempt.finish(DONE, (3,), None, recorder.offer_ids(attempt, runs))
    recorder.close()
    assert spool(["seal", str(home.spool)]) == 0


def needles(home: Home, whom: str) -> tuple[Needles, list[bytes]]:
    """Everything that is of a tenant: ids, identifiers of other systems and their hashes, keys, its pseudonym."""
    lake = home.lake()
    attempts = lake.scan("attempt").filter(pl.col("tenant") == whom).collect()
    pair = ["attempt_hi", "attempt_lo"]
    of_it = {table: lake.scan(table).collect().join(attempts, on=pair, how="semi") for table in ("alias", "foreign_id")}
    keys = KeyFolder(home.root / "ids")
    material = [keys.get(name) for name in keys.names() if name.startswith(whom)]
    texts = [whom.encode(), *material, *(each.encode() for each in of_it["foreign_id"]["value"] if len(each) > 8)]
    ids = {
        "attempt": attempts.select(hi="attempt_hi", lo="attempt_lo").unique(),
        "request": attempts.select(hi="request_hi", lo="request_lo").drop_nulls().unique(),
        "alias": of_it["alias"].select(hi="alias_hi", lo="alias_lo").unique(),
    }
    assert (len(material), ids["attempt"].height > 10) == (1, True)
    hexes = [AttemptKey(*key).to_hex().encode() for key in ids["attempt"].iter_rows()]
    return Needles(dict.fromkeys(texts, "text"), ids), [*texts, *hexes]


def written(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.rglob("*")):
        yield str(path).encode()
        if path.is_file():
            yield path.read_bytes()


def test_a_byte_search_after_an_erasure_finds_nothing_in_the_home_of_prefect_either(tmp_path: Path) -> None:
    home = init_home(tmp_path / "home", key=bytes(range(32)), given={"content_keys": "ids"}, env={})
    simulate(home.spool, attempts=60, seed=3, days=1, start=date(2026, 1, 5), key=home.key)
    keys = KeyFolder(home.root / "ids")
    for name in (NAME, OTHER):
        recorded(home, keys, name)
    (tmp_path / "user").mkdir()
    env = {name: value for name, value in environment(tmp_path / "user").items() if not name.startswith("PREFECT")}
    night = weighbridge(env, "run", "nightly", "--config", home.root, "--json")
    assert night.returncode in {0, 1}, night.stderr
    whom = pseudonym(home.key, "tenant", NAME)
    looked_for, plain = needles(home, whom)
    places = [path for path in sorted(home.root.iterdir()) if path != keys.folder]
    before = {found.path.relative_to(home.root).parts[0] for found in search(places, looked_for)}
    assert {"lake", "spool", "reports"} <= before, "the search sees what is there"
    assert any(b"take-in" in each for each in written(home.state / "prefect")), "and where Prefect writes"

    done = weighbridge(
        env, "erase", "--tenant", NAME, "--billing-too", "--accept-clock", "--config", home.root, "--json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["complete"], told["left"], told["keys"]) == (True, [], 1)
    assert search([*places, tmp_path / "user"], looked_for) == []
    for place in (*places, tmp_path / "user"):
        assert not any(word in each for each in written(place) for word in plain), place
    assert not any(key in each for each in written(keys.folder) for key in plain[1:2])
    left = home.lake().scan("attempt").collect()["tenant"]
    assert (whom in left, pseudonym(home.key, "tenant", OTHER) in left) == (False, True)
