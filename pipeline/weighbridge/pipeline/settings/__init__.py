"""Settings: every knob is one line, from one TOML file and the environment, resolved once into a frozen value.

A policy with structure is a table of the file (`[retention]`), with one line per key here too.
"""

from weighbridge.pipeline.settings.kinds import DAYS, LOG_LEVELS
from weighbridge.pipeline.settings.knobs import KNOBS, Knob, Settings
from weighbridge.pipeline.settings.resolve import CONFIG_ENV, FILE, find_config, load
from weighbridge.pipeline.settings.tables import ALERTS, BASELINE, CLOSE, MATERIAL, RETENTION
from weighbridge.pipeline.settings.written import document

__all__ = [
    "ALERTS",
    "BASELINE",
    "CLOSE",
    "CONFIG_ENV",
    "DAYS",
    "FILE",
    "KNOBS",
    "LOG_LEVELS",
    "MATERIAL",
    "RETENTION",
    "Knob",
    "Settings",
    "document",
    "find_config",
    "load",
]
