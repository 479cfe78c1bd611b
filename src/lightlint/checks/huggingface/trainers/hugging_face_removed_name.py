from __future__ import annotations

from functools import cache

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.releases.hugging_face import tier_since
from lightlint.facts.versions.tables import table

_PACKAGES = ("transformers", "trl", "accelerate")
_INSTEAD = {
    "transformers.AdamW": "`torch.optim.AdamW` is what it was",
    "transformers.optimization.AdamW": "`torch.optim.AdamW` is what it was",
    "trl.DataCollatorForCompletionOnlyLM": "a prompt and completion data set, or `assistant_only_loss`, leaves the prompt out",
}


class HuggingFaceRemovedName(Check):
    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        module = dotted_name(statement.module) if statement.module is not None and not statement.relative else ""
        if not isinstance(statement.names, cst.ImportStar):
            for alias in statement.names:
                self._judge(alias, f"{module}.{dotted_name(alias.name)}", "ImportError")

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        above = self.tree.ancestors(attribute)
        if any(isinstance(each, (cst.Import, cst.ImportFrom, cst.AssignTarget, cst.Del)) for each in above):
            return
        self._judge(attribute, self.names.of(attribute) or "", "AttributeError")

    def _judge(self, place: cst.ImportAlias | cst.Attribute, name: str, raises: str) -> None:
        package = name.partition(".")[0]
        removed = _removed(package).get(name) if package in _PACKAGES else None
        tier = tier_since(self.facts, package, removed) if removed is not None else None
        if removed is None or tier is None or is_versioned(self.facts, place, raises=raises):
            return
        target = self.facts.target(package).version.minor
        instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
        self.report(place, f"`{name}` is gone since {package} {removed} (target: {target}){instead}", tier=tier)


@cache
def _removed(package: str) -> dict[str, str]:
    """Since when names of a package are gone."""
    tables = (table(name).get(package, {}).get("removed", {}) for name in ("removed-names", "package-api"))
    return {name: since for found in tables for since, names in found.items() for name in names}
