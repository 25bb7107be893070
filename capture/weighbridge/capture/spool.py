"""The spool on the serving host: `python -m weighbridge.capture.spool VERB SPOOL`.

    ls | verify | seal                    what lies there; whether it is whole; files of no process become segments
    ship SPOOL DESTINATION [--acks DIR]   copies segments, and deletes those that ingest has acknowledged

Needs pyarrow and nothing else. Run `seal` and `ship` from a timer; both may be killed at any moment and run again.
Exit codes: 0 all is well, 1 something is damaged or could not be done (it is named), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from weighbridge.capture import holding
from weighbridge.capture.holding import Holder
from weighbridge.capture.quota import spool_bytes
from weighbridge.capture.sealing import seal_spool
from weighbridge.capture.shipping import ship
from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.segment import read_manifest, read_table, verify_segment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m weighbridge.capture.spool",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, text in (
        ("ls", "list what lies in the spool"),
        ("verify", "read every file and segment; exit 1 naming what is damaged"),
        ("seal", "turn every closed or abandoned file into a checksummed segment"),
        ("ship", "copy segments to a folder or object store; delete those ingest has acknowledged"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        verb.add_argument("spool", type=Path, help="folder of the spool")
        if name == "ship":
            verb.add_argument("destination", help="a folder, or an address such as s3://bucket/folder")
            verb.add_argument("--acks", metavar="DIR", help="a further folder or address of acknowledgements")
    told = parser.parse_args(arguments)
    if not told.spool.is_dir():
        parser.error(f"there is no folder {told.spool}")
    try:
        if told.verb == "ls":
            return _ls(told.spool)
        if told.verb == "verify":
            return _verify(told.spool)
        return _seal(told.spool) if told.verb == "seal" else _ship(told.spool, told.destination, told.acks)
    except ConfigError as error:
        return _bad(str(error), code=2)


def _ls(spool: Path) -> int:
    bad = 0
    _tell(f"{'file':<60} {'state':<12} {'rows':>9} {'bytes':>12}  end")
    for path in (*holding.journals(spool), *holding.contents(spool)):
        with holding.taken(path) as ours:
            bad += _ls_file(path, ours)
    for segment in holding.segments(spool):
        try:
            manifest, _ = read_manifest(segment)
        except ContractError as error:
            bad += _bad(str(error))
            continue
        rows = sum(rows for rows, _, _ in manifest.files.values())
        size = sum(path.stat().st_size for path in segment.iterdir())
        _tell(f"{segment.name:<60} {'sealed':<12} {rows:>9} {size:>12}  {manifest.end}")
    _tell(f"{len(holding.acks(spool))} acknowledged and not yet deleted; {spool_bytes(spool)} bytes on disk in all")
    return int(bad > 0)


def _ls_file(path: Path, ours: bool) -> int:
    try:
        found = holding.sums(path)
        size = path.stat().st_size
    except (ContractError, OSError) as error:
        if not ours:
            _tell(f"{path.name:<60} {Holder.OPEN:<12}")
            return 0
        return _bad(_why(path, error))
    closed = Holder.CLOSED if found.end is Ended.COMPLETE else Holder.ABANDONED
    _tell(f"{path.name:<60} {closed if ours else Holder.OPEN:<12} {found.rows:>9} {size:>12}  {found.end}")
    return 0


def _verify(spool: Path) -> int:
    bad = files = 0
    for path in (*holding.journals(spool), *holding.contents(spool)):
        files += 1
        with holding.taken(path) as ours:
            try:
                found = holding.sums(path)
            except (ContractError, OSError) as error:
                bad += _bad(_why(path, error)) if ours else 0
                continue
        if found.damaged and ours:
            bad += _bad(f"{path}: {found.damaged} parts are damaged; sealing keeps the rest and counts these as lost")
    for segment in holding.segments(spool):
        files += 1
        try:
            manifest, _ = verify_segment(segment)
            for table in manifest.files:
                read_table(segment, table)
        except (ContractError, OSError) as error:
            bad += _bad(_why(segment, error))
    _tell(f"{files} files and segments read, {bad} damaged")
    return int(bad > 0)


def _seal(spool: Path) -> int:
    done = seal_spool(spool)
    for segment in done.segments:
        _tell(f"sealed {segment.name}")
    for path, why in done.failed:
        _bad(f"{path}: not sealed, {why}")
    _tell(f"{len(done.segments)} segments, {len(done.left)} files of living processes left alone")
    return int(bool(done.failed))


def _ship(spool: Path, destination: str, acks: str | None) -> int:
    done = ship(spool, destination, acks)
    for verb, names in (("copied", done.copied), ("deleted", done.deleted)):
        for name in names:
            _tell(f"{verb} {name}")
    for path, why in done.failed:
        _bad(f"{path.name}: {why}")
    _tell(
        f"{len(done.copied)} copied, {len(done.present)} there already and not acknowledged, "
        f"{len(done.deleted)} acknowledged and deleted here"
    )
    return int(bool(done.failed))


def _why(path: Path, error: Exception) -> str:
    return str(error) if isinstance(error, ContractError) else f"{path} cannot be read ({type(error).__name__})"


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")


def _bad(line: str, *, code: int = 1) -> int:
    sys.stderr.write(line + "\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
