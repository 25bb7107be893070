"""A block opens under its own key and description, and under nothing else."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import replace

import pytest

from weighbridge.schemas import block as format_of
from weighbridge.schemas.block import (
    NONCE,
    STEP,
    TAG,
    BlockError,
    BlockName,
    CipherMissingError,
    open_block,
    seal_block,
)

KEY = bytes(range(32))
NAME = BlockName("token_run", "t_0123456789abcdef", 7, "2026-01", "ids", "0" * 32)
CHANGES: list[Mapping[str, object]] = [
    {"table": "state_event"},
    {"tenant": "t_0123456789abcdee"},
    {"bucket": 8},
    {"month": "2026-02"},
    {"kind": "traces"},
    {"block": "1" * 32},
]


def test_it_opens_and_no_two_sealings_are_alike() -> None:
    one, two = seal_block(KEY, NAME, b"ids"), seal_block(KEY, NAME, b"ids")
    assert one != two
    assert open_block(KEY, NAME, one) == open_block(KEY, NAME, two) == b"ids"


@pytest.mark.parametrize("change", CHANGES)
def test_a_block_that_was_moved_does_not_open(change: Mapping[str, object]) -> None:
    with pytest.raises(BlockError, match="does not open"):
        open_block(KEY, replace(NAME, **change), seal_block(KEY, NAME, b"ids"))  # type: ignore[arg-type]


def test_no_changed_bit_and_no_cut_is_accepted() -> None:
    block = seal_block(KEY, NAME, b"ids of somebody")
    for bit in range(len(block) * 8):
        changed = bytearray(block)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BlockError):
            open_block(KEY, NAME, bytes(changed))
    for size in range(len(block)):
        with pytest.raises(BlockError):
            open_block(KEY, NAME, block[:size])


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 119, 120, 121, 1000])
def test_the_size_of_a_block_tells_its_content_to_64_bytes(size: int) -> None:
    plaintext = bytes(range(256)) * 4
    block = seal_block(KEY, NAME, plaintext[:size])
    assert len(block) == NONCE + TAG + STEP * ((8 + size + 63) // 64)
    assert open_block(KEY, NAME, block) == plaintext[:size]


@pytest.mark.parametrize(
    "padded",
    [
        b"",
        bytes(32),
        (3).to_bytes(8, "little") + b"ids",
        (57).to_bytes(8, "little") + bytes(56),
        (3).to_bytes(8, "little") + b"ids" + bytes(52) + b"x",
        (3).to_bytes(8, "little") + b"ids" + bytes(53 + 64),
        (2**63).to_bytes(8, "little") + bytes(56),
    ],
    ids=["empty", "half", "unfilled", "too long", "no zeros", "too many zeros", "huge"],
)
def test_a_length_that_is_not_that_of_the_block_is_an_error(padded: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(format_of, "_padded", lambda _: padded)
        block = seal_block(KEY, NAME, b"")
    with pytest.raises(BlockError, match="its length is not the one it states"):
        open_block(KEY, NAME, block)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(BlockError):
        open_block(bytes(32), NAME, seal_block(KEY, NAME, b"ids"))


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def missing(name: str, *rest: object, **more: object) -> object:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return there(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(CipherMissingError, match=r"weighbridge\[ids\]"):
        seal_block(KEY, NAME, b"ids")
