"""A lake on S3-compatible storage, an emulator on loopback: every room works, and the rows are those of a folder."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import KEY

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.run.home import Home, init_home
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh, write_reports
from weighbridge.pipeline.run.rooms import check
from weighbridge.pipeline.simulate.simulate import START, simulate
from weighbridge.schemas.errors import LakeBusyError, LakeError

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="the S3 emulator moto is not installed"),
]
BUCKET = "weighbridge-test"
WAIT_S = 60


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    """The address of an emulator in a process of its own, which ends with the module."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + WAIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "the emulator ended"
                assert time.monotonic() < until, "the emulator does not answer"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(emulator: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new lake in a bucket, as the environment says how to reach it."""
    import boto3  # noqa: PLC0415 - comes with the emulator

    for name, value in {
        "AWS_ENDPOINT_URL": emulator,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=emulator, region_name="us-east-1").create_bucket(Bucket=BUCKET)
    return f"s3://{BUCKET}/lake"


def whole_road(home: Home) -> dict[str, str]:
    """Ingest, price, reconcile, validate, report; the digest of every table that does not hold times of runs."""
    simulate(home.spool, attempts=200, seed=3, days=10, key=home.key)
    take_in(home, sorted(home.spool.glob("*.segment")), Intake(day=START))
    lake = home.lake()
    months = all_months(lake)
    days = days_of(lake, months)
    set_prices(home, days)
    weigh(home, months)
    assert check(home, days, START).gate
    pages = write_reports(home, months)
    assert all(page.html.stat().st_size > 10_000 for page in pages.values())
    return lake.digests()


def test_the_whole_road_gives_the_same_rows_as_in_a_folder(bucket: str, tmp_path: Path) -> None:
    """Ingested, priced, reconciled, validated, reported, compacted and purged."""
    there = init_home(tmp_path / "there", key=KEY, given={"lake": bucket})
    here = init_home(tmp_path / "here", key=KEY)
    found = whole_road(there)
    assert found == whole_road(here)
    assert found["reconciled"]
    assert found["finding"]
    lake = there.lake()
    before = lake.digest("attempt")
    lake.append("attempt", lake.scan("attempt").collect().head(0))
    lake.compact("attempt", keep_hours=0)
    lake.purge("attempt")
    assert Lake.open(bucket).digest("attempt") == before


def test_one_writer_of_all_hosts(bucket: str) -> None:
    """Another process has another handle, and sees that the lake is taken."""
    lake, other = Lake.create(f"{bucket}-locked"), Lake.create(f"{bucket}-locked")
    with lake.lock(), lake.lock(), pytest.raises(LakeBusyError, match="whose lease ends in"):
        other.lock().__enter__()
    with other.lock():
        pass


def test_a_bucket_without_a_lake_is_said_to_be_none(bucket: str) -> None:
    """With what to do next."""
    with pytest.raises(LakeError, match=r"is no lake: it has no lake\.json"):
        Lake.open(f"{bucket}/elsewhere")
