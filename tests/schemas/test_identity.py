"""Keys and pseudonyms: vectors that other implementations must reproduce."""

from __future__ import annotations

import hashlib
import hmac
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.schemas.identity import (
    IDENTIFIER,
    NAME,
    AttemptKey,
    framed,
    key_id,
    keyed_key,
    new_attempt_id,
    pseudonym,
)

# The example of RFC 9562, appendix A.6: 2022-02-22 19:22:22.000 UTC.
RFC = "017f22e279b07cc398c4dc0c0c07398f"


def test_the_example_of_the_rfc() -> None:
    random = bytes.fromhex("0cc318c4dc0c0c07398f")
    assert new_attempt_id(1_645_557_742_000, random).to_hex() == RFC


def test_a_key_is_two_signed_big_endian_halves() -> None:
    key = AttemptKey.from_hex(RFC)
    assert key == (0x017F22E279B07CC3, 0x98C4DC0C0C07398F - 2**64)
    assert key.to_bytes() == bytes.fromhex(RFC)
    assert AttemptKey.from_hex(str(uuid.UUID(RFC)).upper()) == key
    assert AttemptKey.from_bytes(b"\xff" * 16) == (-1, -1)
    assert key.bucket == 0x8F & 63 == 15


@given(st.binary(min_size=16, max_size=16))
def test_a_key_survives_its_text(raw: bytes) -> None:
    key = AttemptKey.from_bytes(raw)
    assert AttemptKey.from_hex(key.to_hex()).to_bytes() == raw
    assert 0 <= key.bucket == raw[-1] & 63 < 64


@pytest.mark.parametrize("text", ["", "12", RFC[:-1], RFC + "0", RFC[:-1] + "g"])
def test_a_text_that_is_no_key_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="32 hexadecimal digits are expected, as `explain` prints them"):
        AttemptKey.from_hex(text)


def test_fresh_ids_are_version_7_and_ordered_by_their_time() -> None:
    ids = [uuid.UUID(new_attempt_id().to_hex()) for _ in range(50)]
    assert {item.version for item in ids} == {7}
    assert {item.variant for item in ids} == {uuid.RFC_4122}
    assert len(set(ids)) == 50
    assert new_attempt_id(1).to_bytes() < new_attempt_id(2).to_bytes()


def test_frames_spell_out_kind_and_length() -> None:
    assert (
        framed("ab", b"c", 7) == b"s" + bytes(7) + b"\x02ab" + b"b" + bytes(7) + b"\x01c" + b"i" + bytes(7) + b"\x017"
    )
    assert framed("a", "bc") != framed("ab", "c")
    assert framed("7") != framed(7) != framed(b"7")
    assert framed() == b""


def test_a_keyed_key_is_blake2b_over_the_frames() -> None:
    key = bytes(range(32))
    raw = hashlib.blake2b(b"s" + bytes(7) + b"\x03apis" + bytes(7) + b"\x01x", key=key, digest_size=16).digest()
    assert keyed_key(key, "api", "x").to_bytes() == raw
    assert keyed_key(bytes(32), "api", "x").to_bytes() != raw


def test_a_pseudonym_is_an_hmac_with_the_letter_of_its_kind() -> None:
    key = bytes(range(32))
    message = b"s" + bytes(7) + b"\x06tenant" + b"s" + bytes(7) + b"\x04acme"
    assert pseudonym(key, "tenant", "acme") == "t_" + hmac.new(key, message, hashlib.sha256).hexdigest()[:16]
    assert pseudonym(key, "user", "acme")[2:] != pseudonym(key, "tenant", "acme")[2:]


def test_a_key_id_names_the_key_and_is_stable() -> None:
    key = bytes(range(32))
    assert key_id(key) == hashlib.blake2b(b"weighbridge key id", key=key, digest_size=6).hexdigest()
    assert len(key_id(key)) == 12
    assert key_id(bytes(32)) != key_id(key)


@pytest.mark.parametrize("text", ["chatcmpl-Ab1", "msg_01", "a" * 200, "eyJhbGciOi==", "gpt-4o@2024/x"])
def test_identifiers_pass(text: str) -> None:
    assert IDENTIFIER.fullmatch(text)


@pytest.mark.parametrize("text", ["", "two words", "a" * 201, "naïve", "-leading", "line\n", 'say:"hi"'])
def test_text_is_no_identifier(text: str) -> None:
    assert not IDENTIFIER.fullmatch(text)
    assert not NAME.fullmatch(text)
