"""Bytes as arrays: where some of them stand, and all but some of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
Raw = bytes | memoryview
_WORD = 8


def table(of: bytes) -> Bits:
    """Per byte, whether it is one of these."""
    out = np.zeros(256, np.bool_)
    out[list(of)] = True
    return out


def sparse(where: Bits) -> Ints:
    """The places that hold, where few do: eight are looked at together first."""
    whole = len(where) // _WORD * _WORD
    words = np.flatnonzero(where[:whole].view(np.uint64))
    word, byte = np.nonzero(where[:whole].reshape(-1, _WORD)[words])
    return np.concatenate([words[word] * _WORD + byte, np.flatnonzero(where[whole:]) + whole])


def without(raw: Raw, begins: Ints, ends: Ints) -> Raw:
    """Bytes without the spans that begin and end there, which are in order and do not overlap."""
    if not len(begins):
        return raw
    cuts = np.empty(2 * len(begins) + 2, np.int64)
    cuts[0], cuts[1:-1:2], cuts[2:-1:2], cuts[-1] = 0, begins, ends, len(raw)
    spans = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(raw)]
    )
    # Every other span is kept. Arrays of Arrow are made from buffers: from NumPy's they are by way of pandas.
    kept = pa.Array.from_buffers(pa.bool_(), len(spans), [None, pa.py_buffer(b"\x55" * (len(spans) // 8 + 1))])
    return memoryview(spans.filter(kept).buffers()[2])
