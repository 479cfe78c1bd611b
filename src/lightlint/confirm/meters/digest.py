"""Checksums of what a program holds: equal values have equal ones, on every rank and in every process."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

MOST = 1 << 20  # bytes read of each tensor or array


def digest(value: Any) -> str:
    """A checksum of a batch, a tensor, an array or a container of them: eight hexadecimal digits."""
    crc = 0
    for leaf in _leaves(value):
        crc = zlib.crc32(leaf, crc)
    return f"{crc:08x}"


def _leaves(value: Any) -> Iterator[bytes]:
    if hasattr(value, "detach"):
        flat = value.detach().reshape(-1)[: max(1, MOST // max(1, value.element_size()))]
        yield f"{tuple(value.shape)}{value.dtype}".encode()
        yield _bytes(flat.cpu().contiguous())
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        yield f"{value.shape}{value.dtype}".encode()
        yield value.reshape(-1)[: max(1, MOST // max(1, value.dtype.itemsize))].tobytes()
    elif isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield repr(value)[:1000].encode()


def _bytes(tensor: Any) -> bytes:
    """A flat tensor's memory; through uint8, since numpy knows no bfloat16."""
    import torch

    return bytes(tensor.view(torch.uint8).numpy().tobytes()) if tensor.numel() else b""
