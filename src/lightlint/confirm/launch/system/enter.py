"""Puts overlays over folders and becomes another program: runs by itself, before the program, without lightlint.

Arguments: working directory, number of overlays, for each the folder and where its changes go, then the command. A user
other than root gets a namespace in which only mounts are new: the program keeps its user and group.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence

_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_PRIVATE_BELOW = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_CANNOT_RUN = 127

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _own_namespace() -> None:
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_NEW_MOUNTS) == 0:
        return
    _checked(_libc.unshare(_NEW_MOUNTS | _NEW_USERS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _cover(folder: str, changes: str) -> None:
    options = f"lowerdir={_escaped(folder)},upperdir={_escaped(changes)}/upper,workdir={_escaped(changes)}/work"
    _checked(_libc.mount(b"overlay", os.fsencode(folder), b"overlay", 0, os.fsencode(options)))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def main(words: Sequence[str]) -> None:
    """Enter and become the command.

    Raises:
        OSError: the kernel does not allow it.
    """
    working, count, *rest = words
    overlays, command = rest[: 2 * int(count)], rest[2 * int(count) :]
    _own_namespace()
    _checked(_libc.mount(b"none", b"/", None, _PRIVATE_BELOW, None))
    for folder, changes in zip(overlays[::2], overlays[1::2], strict=True):
        _cover(folder, changes)
    os.chdir(working)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"lightlint: {command[0]}: cannot be started: {error.strerror}\n")
        sys.exit(_CANNOT_RUN)


if __name__ == "__main__":
    main(sys.argv[1:])
