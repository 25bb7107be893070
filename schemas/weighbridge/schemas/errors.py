"""What can be wrong with the program or its surroundings. What is wrong with the *data* is a `Finding` instead.

    WeighbridgeError
    +-- ConfigError      a setting, a mapping file or a price book that cannot be used as written
    +-- ContractError    a file that breaks the agreed format (schema version, segment digest, redaction)
    +-- LakeError        the lake cannot be read or written
    +-- SumError         a sum of counts that no column can hold

Every message ends in the next step. `Transient` and `Terminal` tell a scheduler whether trying again can help.
"""

from __future__ import annotations


class WeighbridgeError(Exception):
    """The root of all errors that Weighbridge raises on purpose."""


class Transient:
    """Mix-in: the same call may succeed later (a lock, a lost race, a full disk that is being cleared)."""


class Terminal:
    """Mix-in: the same call with the same input fails again."""


class ConfigError(WeighbridgeError, Terminal):
    """A setting, mapping or price book cannot be used as written."""


class ContractError(WeighbridgeError, Terminal):
    """A file breaks the agreed format."""


class LakeError(WeighbridgeError):
    """The lake cannot be read or written."""


class LakeBusyError(LakeError, Transient):
    """Another writer holds the lake, or won a race for the same table version."""


class SumError(WeighbridgeError, Terminal):
    """A sum of counts is beyond 64 bits. It is never given as another number instead."""
