"""Validation where pyspark is installed, which Great Expectations imports of its own accord."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests.spark import needs_spark

pytestmark = [pytest.mark.spark, needs_spark()]
JUDGED = """
from weighbridge.pipeline.validate.rule import Gravity
from weighbridge.pipeline.validate.suite import NoneBreaks, Sheet, judge

rule = NoneBreaks("minimum.queue_us", Gravity.CRITICAL, "is at least 0")
found = judge([Sheet("one", {rule.rule: [0]}, [rule]), Sheet("two", {rule.rule: [0, 3]}, [rule])])
print([each.holds for each in found])
"""


def test_rules_are_judged_in_a_process_whose_main_module_is_no_file() -> None:
    """Spark's client takes such a process for its doctests, and would end it with exit code 0."""
    assert find_spec("pyspark") is not None
    done = subprocess.run([sys.executable, "-c", JUDGED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[True, False]\n"), done.stderr
