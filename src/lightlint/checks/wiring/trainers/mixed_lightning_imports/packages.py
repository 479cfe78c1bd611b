"""From which of Lightning's two packages a name or a class comes: `pytorch_lightning` and `lightning` share no class."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind, dotted_name

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

OLD, NEW = "pytorch_lightning", "lightning"
_DEEPEST = 10


def package_of_name(dotted: str) -> str | None:
    """The package of a full import path; None for what belongs to neither, or to both as Fabric does."""
    first, _, rest = dotted.partition(".")
    if first == NEW and rest.split(".")[0] in {"fabric", "app", "data"}:
        return None
    return first if first in {OLD, NEW} else None


def _only(packages: Iterable[str | None]) -> str | None:
    found = {each for each in packages if each}
    return found.pop() if len(found) == 1 else None


class Packages:
    """Packages of the names and classes that one file uses."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts

    def of_expression(self, expression: cst.CSTNode) -> str | None:
        """The package from which this file imports a name; None if it tries both."""
        root: cst.CSTNode = expression
        while isinstance(root, cst.Attribute):
            root = root.value
        if not isinstance(root, cst.Name):
            return None
        found = self._facts.bindings.lookup(root)
        if not found or any(each.kind is not Kind.IMPORT for each in found):
            return None
        rest = dotted_name(expression).partition(".")[2]
        packages = {package_of_name(f"{each.dotted}.{rest}" if rest else each.dotted) for each in found}
        return packages.pop() if len(packages) == 1 else None

    def of_class(self, name: str, near: Path | None = None, depth: int = 0) -> str | None:
        """The package from which a class of the project gets its Lightning base, None where that is not certain."""
        facts = self._facts
        local = facts.classes.local(name) if near is None else None
        if depth > _DEEPEST:
            return None
        if local is not None:
            return _only(self._of_base(arg.value, depth) for arg in local.bases)
        found = facts.project.find_class(name, near or facts.path.parent)
        if found is None:
            return None
        summary, path = found
        if any(base.startswith("lightning.") for base in summary.bases):
            return self.of_file(path)
        return _only(self.of_class(base, path.parent, depth + 1) for base in summary.bases if base)

    def of_file(self, path: Path) -> str | None:
        """The one package of the two that a file of the project imports from; None for both or neither."""
        return _only(map(package_of_name, self._facts.project.summary(path).imported))

    def _of_base(self, base: cst.BaseExpression, depth: int) -> str | None:
        if isinstance(base, cst.Subscript):
            base = base.value
        name = self._facts.names.of(base) or ""
        return self.of_expression(base) if name.startswith("lightning.") else self.of_class(name, None, depth + 1)
