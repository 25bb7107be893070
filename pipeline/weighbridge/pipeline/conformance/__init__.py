"""Conformance: cases of what an API answered and what that means, run against the readings and prices."""

from weighbridge.pipeline.conformance.run import OWN_CASES, CaseResult, Outcome, run_case, run_file

__all__ = ["OWN_CASES", "CaseResult", "Outcome", "run_case", "run_file"]
