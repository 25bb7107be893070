"""The script of a text: by most of its letters, told from nothing else."""

from __future__ import annotations

import pytest

from weighbridge.recount.script import LOOKED_AT, script
from weighbridge.schemas.enumerations import Script


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Script.NONE),
        ("1 + 1 = 2; \u2026 \U0001f600", Script.NONE),
        ("plain words", Script.LATIN),
        ("na\u00efve \u0141\u00f3d\u017a, Vi\u1ec7t Nam", Script.LATIN),
        ("\uff21\uff42\uff43", Script.LATIN),
        ("\u03b5\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", Script.GREEK),
        ("\u0440\u0443\u0441\u0441\u043a\u0438\u0439", Script.CYRILLIC),
        ("\u05e2\u05d1\u05e8\u05d9\u05ea", Script.HEBREW),
        ("\u0627\u0644\u0639\u0631\u0628\u064a\u0629", Script.ARABIC),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", Script.INDIC),
        ("\u0e44\u0e17\u0e22", Script.THAI),
        ("\u4e2d\u6587\u5b57\U00020000", Script.HAN),
        ("\u6771\u4eac\u306b\u884c\u304f", Script.KANA),
        ("\uff76\uff85", Script.KANA),
        ("\ud55c\uad6d\uc5b4", Script.HANGUL),
        ("\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8", Script.OTHER),
        ("abc \u0430\u0431\u0432", Script.MIXED),
        # Seven letters of ten are enough, six are not.
        ("abcdefg \u0430\u0431\u0432", Script.LATIN),
        ("abcdef \u0430\u0431\u0432\u0433", Script.MIXED),
    ],
)
def test_a_text_is_written_in_the_script_of_most_of_its_letters(text: str, expected: Script) -> None:
    assert script(text) == expected


def test_a_kana_in_twenty_letters_of_han_is_japanese_and_one_in_thirty_is_not() -> None:
    assert script("\u4e2d" * 19 + "\u306e") == Script.KANA
    assert script("\u4e2d" * 29 + "\u306e") == Script.HAN


def test_no_more_than_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert script("a" * LOOKED_AT + "\u0430" * 10 * LOOKED_AT) == Script.LATIN
