"""Hidden tokens of closed models are consistent, never verified: in every sentence of an audit, and of the product."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from weighbridge.pipeline.audit.labels import LABELS, UNKNOWN_LABEL
from weighbridge.pipeline.audit.words import quiet, sentence
from weighbridge.schemas.enumerations import AuditVerdict, Grade

ROOT = Path(__file__).resolve().parents[3]
_HIDDEN = re.compile(r"hidden|reasoning", re.IGNORECASE)
_CLAIM = re.compile(r"\b(verified|verifies|proves|proven|proved|confirmed|confirms)\b", re.IGNORECASE)
_DENIED = re.compile(r"\b(never|not|no|nobody|nothing|cannot)\b|n't", re.IGNORECASE)
LACKING = ((), ("calibrated",), ("grows",), ("cause",), ("hidden",), ("messages",), ("grows", "cause"))


def broken(text: str) -> list[str]:
    """Sentences that say of hidden tokens that they were verified."""
    return [
        " ".join(each.split())
        for each in re.split(r"(?<=[.!?|])\s|\n\s*\n|;", text)
        if _HIDDEN.search(each) and _CLAIM.search(each) and not _DENIED.search(each)
    ]


def test_a_claim_about_hidden_tokens_is_noticed_and_its_denial_is_none() -> None:
    assert broken("The reasoning was verified. All is well.") == ["The reasoning was verified."]
    assert broken("Hidden tokens are consistent, never verified. The visible ones were verified.") == []


def test_no_sentence_of_an_audit_claims_more_than_was_seen() -> None:
    labels = (*LABELS, UNKNOWN_LABEL, None)
    said = [sentence(*each) for each in itertools.product(AuditVerdict, Grade, labels, LACKING)]
    for each in (*said, *map(quiet, Grade)):
        assert not broken(each), each
        assert not _CLAIM.search(each), each
    for grade in (Grade.G2, Grade.G4):
        assert "consistent" in quiet(grade)
    assert all("consistent" in sentence(AuditVerdict.SUSPECTED, Grade.G4, label) for label in LABELS)
    assert "--calibrate FROM..TO" in sentence(AuditVerdict.NOT_CALIBRATED, Grade.G3, None)


def test_what_is_missing_for_an_accusation_is_said() -> None:
    said = sentence(AuditVerdict.SUSPECTED, Grade.G3, LABELS[0], ("grows", "cause"))
    assert "No accusation, as the gap was not shown to grow" in said
    assert said.endswith(LABELS[0].cure)


@pytest.mark.parametrize("folder", ["pipeline", "capture", "schemas", "dags", "docs", "README.md"])
def test_nothing_the_product_says_claims_to_have_verified_hidden_tokens(folder: str) -> None:
    place = ROOT / folder
    files = (
        [place] if place.is_file() else [p for p in place.rglob("*") if p.suffix in {".py", ".md", ".html", ".toml"}]
    )
    assert files
    found = {str(path.relative_to(ROOT)): each for path in files if (each := broken(path.read_text("utf-8")))}
    assert not found
