"""What the driver says that this process holds on a GPU: its context, its libraries and torch's pool, in MiB."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from typing import Any

_QUERY = ("nvidia-smi", "--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits")
_SECONDS = 10


@cache  # asked once, right behind the line that made the context
def held_on(device: int, cuda: Any) -> float | None:
    """None where the driver does not say: in a container with process numbers of its own, or with an old torch."""
    uuid = getattr(cuda.get_device_properties(device), "uuid", None)
    if uuid is None:
        return None
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return of_process(done.stdout, os.getpid(), str(uuid))


def of_process(listed: str, pid: int, uuid: str) -> float | None:
    """What a process holds on a GPU by the list of `nvidia-smi`."""
    for line in listed.splitlines():
        words = [word.strip() for word in line.split(",")]
        if words[:2] == [str(pid), f"GPU-{uuid}"] and words[2:] and words[2].isdigit():
            return float(words[2])
    return None
