"""Which script a text is mostly written in: as much of its language as a recount may keep.

How far a recount misses the tokens that were generated depends on the language of the text, so audits hold answers of
one script to one tolerance. Blocks of letters are those of the Unicode standard (Blocks.txt).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Final

from weighbridge.schemas.enumerations import Script

# The first characters of a text tell enough; a longer one is not looked at to its end.
LOOKED_AT: Final = 1 << 16
# Below this share of the letters the commonest script is not what the text is written in.
DOMINANT: Final = 0.7
# Japanese is told by its kana, of which few sentences have less than this share; Chinese has none.
KANA: Final = 0.05
_BLOCKS: Final = (
    (0x0000, Script.LATIN),
    (0x0250, Script.OTHER),
    (0x0370, Script.GREEK),
    (0x0400, Script.CYRILLIC),
    (0x0530, Script.OTHER),
    (0x0590, Script.HEBREW),
    (0x0600, Script.ARABIC),
    (0x0700, Script.OTHER),
    (0x0750, Script.ARABIC),
    (0x0780, Script.OTHER),
    (0x0900, Script.INDIC),
    (0x0E00, Script.THAI),
    (0x0E80, Script.OTHER),
    (0x1100, Script.HANGUL),
    (0x1200, Script.OTHER),
    (0x1E00, Script.LATIN),
    (0x1F00, Script.GREEK),
    (0x2000, Script.OTHER),
    (0x2E80, Script.HAN),
    (0x3040, Script.KANA),
    (0x3100, Script.HAN),
    (0x3130, Script.HANGUL),
    (0x3190, Script.HAN),
    (0x31F0, Script.KANA),
    (0x3200, Script.HAN),
    (0xA000, Script.OTHER),
    (0xAC00, Script.HANGUL),
    (0xD7B0, Script.OTHER),
    (0xF900, Script.HAN),
    (0xFB00, Script.OTHER),
    (0xFB50, Script.ARABIC),
    (0xFE00, Script.OTHER),
    (0xFF21, Script.LATIN),
    (0xFF66, Script.KANA),
    (0xFFA0, Script.OTHER),
    (0x20000, Script.HAN),
    (0x32000, Script.OTHER),
)
_STARTS: Final = [start for start, _ in _BLOCKS]


def script(text: str) -> Script:
    """The script of most letters of a text; MIXED where none has 70 %, NONE where there is no letter.

    Han with kana is KANA (Japanese). Digits, punctuation, symbols and spaces are no letters.
    """
    text = text[:LOOKED_AT]
    if text.isascii():
        return Script.LATIN if any(map(str.isalpha, text)) else Script.NONE
    letters: Counter[Script] = Counter()
    for letter, times in Counter(text).items():
        if letter.isalpha():
            letters[_BLOCKS[bisect_right(_STARTS, ord(letter)) - 1][1]] += times
    both = letters[Script.HAN] + letters[Script.KANA]
    if letters[Script.KANA] >= KANA * both:
        letters[Script.KANA], letters[Script.HAN] = both, 0
    whole = letters.total()
    if not whole:
        return Script.NONE
    most, times = letters.most_common(1)[0]
    return most if times >= DOMINANT * whole else Script.MIXED
