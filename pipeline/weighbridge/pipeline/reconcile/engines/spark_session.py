"""The Spark session: the one that is active, or one that the environment describes, or a small one of this host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What the environment says about a cluster; where any of it is set, it alone describes the session that is started.
DESCRIBED = ("SPARK_REMOTE", "SPARK_CONF_DIR", "SPARK_HOME", "MASTER", "PYSPARK_SUBMIT_ARGS")
# What a session that is started here has, wherever it runs. Where in Python a column was made is not asked for at every
# call: our plans are made of thousands of them, and it takes as long as making them.
STARTED: Mapping[str, str] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# Two threads of one Java process that nobody else can reach, with so much memory. Adaptive execution plans every stage
# anew, which costs more than it saves where all rows are on one host; code of plans as wide as ours is too long to be
# compiled, and is not worth trying.
LOCAL: Mapping[str, str] = {
    **STARTED,
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    # A busy host is slow to answer itself, and not lost.
    "spark.executor.heartbeatInterval": "60s",
    "spark.network.timeout": "600s",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.maxFields": "40",
}
# What our frames need of any session while they are computed. Sums that do not fit have to be errors (ANSI), days are
# days of UTC; and what Spark infers about columns from the columns they are made of grows with every column that is
# made of others, until plans as deep as ours are never optimised to an end. To look after each rule whether a plan is
# still whole, and to know where in a program each part of it was written, is for those who write Spark.
NEEDED: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def session() -> tuple[SparkSession, bool]:
    """A session, and whether it was started here.

    Raises:
        ConfigError: none can be had.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an optional package

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    builder = SparkSession.builder.appName("weighbridge")
    alone = not any(os.environ.get(name) for name in DESCRIBED)
    for name, value in (LOCAL if alone else STARTED).items():
        builder = builder.config(name, value)
    try:
        made = builder.getOrCreate()
        if alone:
            made.sparkContext.setLogLevel("ERROR")
    except Exception as error:  # noqa: BLE001 - whatever keeps a JVM from starting
        raise ConfigError(
            f"no Spark session can be had ({type(error).__name__}): Java 17 is needed, and JAVA_HOME where it "
            "is not on the path; for a cluster see docs/scaling.md, or choose the engine polars"
        ) from None
    return made, True


def as_needed(made: SparkSession) -> dict[str, str | None]:
    """Set what our frames need, and tell what was set before; null where nothing was."""
    before = {name: made.conf.get(name, None) for name in NEEDED}
    for name, value in NEEDED.items():
        made.conf.set(name, value)
    return before


def as_before(made: SparkSession, before: Mapping[str, str | None]) -> None:
    """Leave a session as it was found."""
    for name, value in before.items():
        if value is None:
            made.conf.unset(name)
        else:
            made.conf.set(name, value)
