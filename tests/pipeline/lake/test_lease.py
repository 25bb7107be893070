"""The lease of a lake on object storage: one writer of all hosts, and none for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from weighbridge.pipeline.lake.lease import APART, Lease
from weighbridge.schemas.errors import LakeBusyError


def test_one_holds_it_and_others_are_told_who(tmp_path: Path) -> None:
    """Given up, it is free at once."""
    uri = str(tmp_path / "_lock")
    first, second = Lease(uri, clock=lambda: 1000.0), Lease(uri, clock=lambda: 1001.0)
    with first.held(), pytest.raises(LakeBusyError, match=f"written by {first.holder}.*ends in 329 s"):
        second.take()
    with second.held():
        second.check()


def test_it_ends_by_itself_when_its_holder_was_killed(tmp_path: Path) -> None:
    """Clocks of hosts may be half a minute apart, and not more."""
    uri = str(tmp_path / "_lock")
    Lease(uri, lasts=60, clock=lambda: 1000.0).take()
    with pytest.raises(LakeBusyError):
        Lease(uri, clock=lambda: 1059.0 + APART).take()
    Lease(uri, clock=lambda: 1061.0 + APART).take()


def test_of_several_who_want_it_at_once_one_gets_it(tmp_path: Path) -> None:
    """All of them saw that it was free."""
    uri = str(tmp_path / "_lock")
    with Lease(uri).held():
        pass
    won: list[Lease] = []
    lost: list[Lease] = []
    start = threading.Barrier(4)

    def want(lease: Lease) -> None:
        start.wait()
        try:
            lease.take()
            won.append(lease)
        except LakeBusyError:
            lost.append(lease)

    threads = [threading.Thread(target=want, args=(Lease(uri),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 3)


def test_who_lost_it_may_not_go_on(tmp_path: Path) -> None:
    """A host that slept through its time learns so when it renews, and its next commit is refused."""
    uri = str(tmp_path / "_lock")
    now = [1000.0]
    slept = Lease(uri, lasts=0.03, clock=lambda: now[0])
    with slept.held():
        slept.check()
        now[0] += 3600
        Lease(uri, lasts=7200, clock=lambda: now[0]).take()
        assert slept._lost.wait(20)
        with pytest.raises(LakeBusyError, match="ran out and another writer has it"):
            slept.check()
