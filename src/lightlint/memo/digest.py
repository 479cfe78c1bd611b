"""Short names for contents."""

from __future__ import annotations

from hashlib import blake2b


def digest(data: bytes | str) -> str:
    """A short name for some bytes or text that no others have."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()
