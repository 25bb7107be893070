"""Write constraints.txt: the closure of all extras, at the versions installed in the environment that runs this.

    make lock        # in an environment with the extras pipeline, report, ids and dev, on Python 3.11

Requirements that are not installed here (the extras `models` and `spark` need not be) keep the pin they have.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "constraints.txt"
HEAD = """\
# Every version Weighbridge is tested with on Python 3.11, for all extras: `pip install -c constraints.txt ...`.
# Written by `make lock`. torch is pinned for the extra `models`, which the tests of its adapter need.
"""


def declared() -> Iterator[Requirement]:
    """What pyproject.toml asks for: the base, the build and every extra."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = content["project"]
    extras = [items for name, items in project["optional-dependencies"].items() if name != "all"]
    for items in (project["dependencies"], content["build-system"]["requires"], *extras):
        yield from map(Requirement, items)


def closure(kept: dict[str, str]) -> dict[str, str]:
    """Name -> version of everything declared and whatever that needs, on this Python and platform."""
    installed = {canonicalize_name(item.metadata["Name"]): item for item in metadata.distributions()}
    pins: dict[str, str] = {}
    waiting = list(declared())
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), tuple(sorted(requirement.extras))
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found = installed.get(name)
        if found is None:
            pins[name] = kept[name]
            continue
        pins[name] = found.version.partition("+")[0]
        for text in found.requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append(inner)
    return pins


def main() -> int:
    """Write the file; 2 where a requirement is neither installed nor pinned."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    kept = dict(match.groups() for line in lines if (match := re.fullmatch(r"([a-z0-9-]+)==(\S+)", line)))
    try:
        pins = closure(kept) | {name: kept[name] for name in ("pyspark", "py4j")}
    except KeyError as error:
        sys.stderr.write(f"{error.args[0]} is neither installed here nor pinned in {FILE.name}; do one of the two\n")
        return 2
    FILE.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
