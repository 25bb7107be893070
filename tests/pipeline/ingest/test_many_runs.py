"""The numbers of lines as arrays: put back into what is left of a line, they are the line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.ingest.json_lines import BOM
from weighbridge.pipeline.ingest.many import blocks
from weighbridge.pipeline.ingest.many.places import Codes
from weighbridge.pipeline.ingest.many.runs import LEADS, LONGEST, NO_COUNT, NO_EXPONENT, NO_FRACTION, Block, block_of
from weighbridge.pipeline.ingest.many.template import tokens_of

NUMBERS = [b"0", b"7", b"12", b"00400", b"123456789", b"9" * 16, b"8" * 17, b"5" * 40]
AROUND = [*(b"%c" % code for code in b' :,[]}-.eE+"\t\r'), b"gpt-", b"\xc3\xa9", b""]
PIECE = st.sampled_from([*NUMBERS, *AROUND])
LINES = st.lists(st.lists(PIECE, max_size=9).map(b"".join), min_size=1, max_size=6)


def put_back(block: Block, number: int) -> bytes:
    """A line, of which runs longer than `LONGEST` are taken from the line itself."""
    bare, line = block.bare[block.of_line[number]], block.line(number)
    out = b""
    end, run = 0, int(block.first[number])
    last = int(block.first[number + 1]) if number + 1 < len(block.first) else len(block.values)
    for token in _zeros(bare):
        length = int(block.lengths[run])
        begin = len(out) + token - end
        digits = b"%0*d" % (length, block.values[run]) if length <= LONGEST else line[begin : begin + length]
        assert digits.isdigit()
        assert len(digits) == length
        odd = int(block.odd[run])
        assert bool(odd & LEADS) == (length > 1 and digits.startswith(b"0"))
        assert (bool(odd & NO_COUNT), bool(odd & NO_FRACTION), bool(odd & NO_EXPONENT)) == (
            length > 15,
            length > 30,
            length > 2,
        )
        out += bare[end:token] + digits
        end, run = token + 1, run + 1
    assert run == last
    return bytes(out + bare[end:])


def _zeros(bare: bytes) -> list[int]:
    """Where the zeros stand that runs left: a run of one digit with what a number has before or after it."""
    found, at = [], 0
    while at < len(bare):
        end = at
        while bare[end : end + 1].isdigit():
            end += 1
        if end > at:
            before, after = bare[at - 1 : at] or b"\n", bare[end : end + 1]
            if before in b" :,[" or after in b",}] \neE" or (before, after) == (b"-", b"."):
                assert bare[at:end] == b"0"
                found.append(at)
        at = end + 1
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=3))
def test_lines_are_their_numbers_and_what_is_left_of_them(chunks: list[list[bytes]]) -> None:
    block = block_of([b"".join(line + b"\n" for line in lines) for lines in chunks])
    lines = [line + b"\n" for lines in chunks for line in lines]
    assert [put_back(block, number) for number in range(len(lines))] == lines
    assert [block.line(number) for number in range(len(lines))] == lines


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        (b'{"model": "o3-mini-2025-01-31", "n": 12}', b'{"model": "o3-mini-2025-01-31", "n": 0}'),
        (b'{"a":[1,22],"b":-33.5e-07}', b'{"a":[0,0],"b":-0.0e-0}'),
        (b'{"1": 2, "x3": "5 6"}', b'{"1": 0, "x3": "0 0"}'),
    ],
)
def test_digits_of_names_stay(line: bytes, bare: bytes) -> None:
    assert block_of([line + b"\n"]).bare == [bare + b"\n"]


def test_tokens_are_counted_as_runs_are() -> None:
    tokens = tokens_of(b'{"gpt-5": -1.5e10, "n 2 3": 44, "v":\t6.5}')
    assert (tokens.text, tokens.fraction, tokens.exponents, tokens.whole) == ([3, 4], [0, 1, 2, 6], [2], [5])
    assert tokens.leading == [0, 5]


def test_a_block_is_read_into_what_another_was_read_into(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_CHUNK", 8), ("_BLOCK", 20), ("_WHOLE_BLOCK", 20), ("MAX_LINE", 30)):
        monkeypatch.setattr(blocks, name, size)
    lines = [b"%d" % number * (number % 5) for number in range(1, 60)]
    spare: list[Codes] = []
    found: list[bytes] = []
    buffers = set()
    for some in blocks.blocks(io.BytesIO(BOM + b"\n".join(lines)), spare):
        found += b"".join(some.chunks).split(b"\n")[:-1]
        assert some[0] == found[-sum(bytes(chunk).count(b"\n") for chunk in some.chunks)]
        buffers.add(id(some.buffer))
        spare.append(some.buffer)
    assert found == lines
    assert len(buffers) == 1
