"""Runs something right after a module was imported, and imports nothing that the program would not."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

Then = Callable[[ModuleType], None]


def when_imported(name: str, then: Then) -> None:
    """Call `then` with the module `name` once it is imported, now if it is already."""
    if name in sys.modules:
        then(sys.modules[name])
        return
    finder = next((each for each in sys.meta_path if isinstance(each, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.waiting.setdefault(name, []).append(then)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what the finders behind it find, with a loader that tells when it is done."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Then]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    _tell(spec.loader, self.waiting.pop(fullname))
                return spec
        return None


def _tell(loader: importlib.abc.Loader, then: Sequence[Then]) -> None:
    """Let a loader call `then` behind its `exec_module`. The loader is this module's own, so nothing else is touched."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.exec_module = execute  # type: ignore[method-assign]
        execute(module)
        for each in then:
            each(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]
