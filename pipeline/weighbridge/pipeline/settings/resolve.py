"""Where the values of the knobs come from, resolved once into a frozen value.

    command line  >  environment (WEIGHBRIDGE_...)  >  weighbridge.toml  >  default

Nothing else of the product reads the environment. Paths in the file are relative to the folder of the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from weighbridge.pipeline.settings.knobs import KNOBS, PREFIX, Knob, Settings
from weighbridge.pipeline.settings.shape import InsideError, mapping, nearest, type_name
from weighbridge.schemas.errors import ConfigError

FILE = "weighbridge.toml"
CONFIG_ENV = "WEIGHBRIDGE_CONFIG"
# Names of the environment that start like ours and are no knobs: where the file is, what tests and the agent use.
_RESERVED = frozenset(
    {
        *(CONFIG_ENV, "WEIGHBRIDGE_REAL", "WEIGHBRIDGE_REAL_MARKER", "WEIGHBRIDGE_MODELS", "WEIGHBRIDGE_CAPTURE_RAISE"),
        "WEIGHBRIDGE_ROOT_KEY",  # the root key of token ids, where that is how they are kept
        "WEIGHBRIDGE_SPARK_EXCHANGE",  # the folder that Spark's driver and executors both see
        "WEIGHBRIDGE_SPARK",
    }
)
_BY_NAME = {knob.name: knob for knob in KNOBS}
_BY_ENV = {knob.env: knob for knob in KNOBS}


def find_config(given: Path | None, env: Mapping[str, str], start: Path | None = None) -> Path:
    """The settings file: the one given, else the one the environment names, else `weighbridge.toml` here or above.

    Raises:
        ConfigError: the named file is not there, or there is none here or in any folder above.
    """
    named = given or (Path(env[CONFIG_ENV]) if env.get(CONFIG_ENV) else None)
    if named is not None:
        path = named / FILE if named.is_dir() else named
        if not path.is_file():
            folder = path.parent if path.suffix else path
            raise ConfigError(
                f"there is no settings file {path}; make an installation with `weighbridge init {folder}`"
            )
        return path.absolute()
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise ConfigError(
        f"there is no {FILE} in {here} or above it; "
        "make an installation with `weighbridge init DIR` and go there, or name one with --config DIR"
    )


def load(
    config: Path | None = None,
    env: Mapping[str, str] | None = None,
    given: Mapping[str, object] | None = None,
) -> Settings:
    """Resolve every knob.

    Args:
        config: the TOML file, or null for defaults relative to the current folder.
        env: the environment; the process's own where null.
        given: values of the command line, by knob name; null ones are passed over.

    Raises:
        ConfigError: an unknown key (with the nearest valid one), a value of the wrong type or out of range, a file
            that is not TOML.
    """
    env = os.environ if env is None else env
    folder = (config.parent if config else Path.cwd()).absolute()
    values: dict[str, object] = {}
    origins: dict[str, str] = {}

    def take(knob: Knob, raw: object, where: str, origin: str, base: Path, types: tuple[type, ...]) -> None:
        values[knob.name] = _checked(knob, raw, where, base, types)
        for name in [name for name in origins if name.startswith(f"{knob.name}.")]:
            del origins[name]
        origins[knob.name] = origin
        if knob.kind.shape:
            origins.update({f"{knob.name}.{name}": origin for name in mapping(raw)})

    for knob in KNOBS:
        take(knob, knob.default, knob.name, "default", folder, knob.kind.types)
    for name, raw in (_read(config) if config else {}).items():
        knob = _known(name, _BY_NAME, str(config))
        take(knob, raw, f"{config}: {name}", str(config), folder, knob.kind.types)
    for name, text in sorted(env.items()):
        if name.startswith(PREFIX) and name not in _RESERVED:
            take(_known(name, _BY_ENV, "environment"), text, name, f"environment {name}", Path.cwd(), (str,))
    for name, raw in (given or {}).items():
        if raw is not None:
            knob, option = _known(name, _BY_NAME, "command line"), "--" + name.replace("_", "-")
            take(knob, raw, option, f"option {option}", Path.cwd(), (str, *knob.kind.types))
    return Settings(**values, origins=origins, folder=folder)  # type: ignore[arg-type]


def _read(config: Path) -> dict[str, object]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no settings file {config}; make one with `weighbridge init`") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not TOML: {error}; correct that line") from error


def _known(name: str, table: Mapping[str, Knob], where: str) -> Knob:
    if name in table:
        return table[name]
    raise ConfigError(f"{where}: unknown setting {name!r}; {nearest(name, table)}")


def _checked(knob: Knob, raw: object, where: str, folder: Path, types: tuple[type, ...]) -> object:
    if not isinstance(raw, types) or isinstance(raw, bool):
        raise ConfigError(f"{where} is {type_name(raw)}; {knob.kind.name} is expected: {knob.doc}")
    try:
        return knob.kind.parse(raw, folder)
    except InsideError as error:
        raise ConfigError(f"{where}{'.' if error.at else ''}{error.at} {error}") from error
    except ValueError as error:
        raise ConfigError(f"{where} is {raw!r}; allowed is {error}") from error
