"""The same month closed elsewhere, by somebody else, a year later: the same bytes but for the seal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.pipeline.close.conftest import Office, contents

_CLOSE = """
import sys
from datetime import datetime
from pathlib import Path
from tests.pipeline.close.conftest import Office
root, now, by = sys.argv[1:]
done = Office(Path(root)).close(now=datetime.fromisoformat(now), by=by)
assert done.new, done.refused
print(done.root)
"""
_ROOT = Path(__file__).resolve().parents[3]


def closed_in(office: Office, env: dict[str, str], now: str, by: str) -> str:
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", _CLOSE, str(office.root), now, by],
        env={**os.environ, "PYTHONPATH": path, **env},
        cwd=office.root,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_zone_locale_hash_seed_clock_and_name_change_nothing_but_the_seal(filled_once: Office, tmp_path: Path) -> None:
    one, other = (filled_once.copy(tmp_path / name) for name in ("one", "other"))
    east = {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "1"}
    west = {"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONHASHSEED": "2", "LANG": "de_DE.UTF-8"}
    roots = {
        closed_in(one, east, "2026-05-20T09:30:00+00:00", "finops"),
        closed_in(other, west, "2027-06-01T00:00:00-05:00", "somebody.else"),
    }
    assert len(roots) == 1
    left, right = (contents(office.pack()) for office in (one, other))
    assert left.keys() == right.keys()
    assert {path for path in left if left[path] != right[path]} == {"seal.json"}


def test_the_order_in_which_rows_came_changes_nothing(filled_once: Office, closed_once: Office, tmp_path: Path) -> None:
    again = Office(tmp_path / "again")
    lake = again.lake
    for table in ("attempt", "usage_report", "segment", "gap", "foreign_id", "quarantine", "invoice_line"):
        rows = filled_once.lake.scan(table).collect()
        for row in rows.sample(fraction=1, shuffle=True, seed=3).iter_slices(1):
            lake.append(table, row)
    for table in ("finding", "finding_status"):
        lake.append(table, filled_once.lake.scan(table).collect().reverse())
    again.weigh()
    assert again.close().root == closed_once.close().root
