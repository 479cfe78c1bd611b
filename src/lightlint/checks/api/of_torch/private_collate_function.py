from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind, dotted_name
from lightlint.facts.releases.compat import is_for_older
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import replace

_PRIVATE, _PUBLIC = "torch.utils.data._utils.collate", "torch.utils.data"
_FUNCTIONS = {"default_collate", "default_convert"}
_PUBLIC_SINCE = "1.11"


class PrivateCollateFunction(Check):
    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        if (
            statement.relative
            or dotted_name(statement.module) != _PRIVATE
            or isinstance(statement.names, cst.ImportStar)
        ):
            return
        names = [dotted_name(alias.name) for alias in statement.names]
        for alias, name in zip(statement.names, names, strict=True):
            if name in _FUNCTIONS:
                assert statement.module is not None
                whole = replace(self.code, statement.module, _PUBLIC) if _FUNCTIONS.issuperset(names) else None
                self._tell(alias, name, whole)

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        name = attribute.attr.value
        if name not in _FUNCTIONS or self._spelled(attribute) != f"{_PRIVATE}.{name}":
            return
        parts = dotted_name(attribute).split(".")
        hidden = parts[: parts.index("_utils")] if "_utils" in parts else []
        text = ".".join([*hidden, name])
        self._tell(attribute, name, replace(self.code, attribute, text) if hidden else None)

    def _spelled(self, attribute: cst.Attribute) -> str:
        """The full name as the import spells it: canonical names hide which module was meant."""
        root: cst.CSTNode = attribute
        while isinstance(root, cst.Attribute):
            root = root.value
        found = self.names.bindings.lookup(root) if isinstance(root, cst.Name) else []
        if not found or any(each.kind is not Kind.IMPORT or each.dotted != found[0].dotted for each in found):
            return ""
        return f"{found[0].dotted}.{dotted_name(attribute).partition('.')[2]}"

    def _tell(self, node: cst.CSTNode, name: str, draft: Draft | None) -> None:
        if not self.facts.torch.may_be_at_least(_PUBLIC_SINCE) or is_for_older(self.facts, node):
            return
        repair = Repair(f"take it from `{_PUBLIC}`", draft, writes=f"torch>={_PUBLIC_SINCE}")
        self.report(node, f"`{name}` is taken from a private module of torch", repair=repair)
