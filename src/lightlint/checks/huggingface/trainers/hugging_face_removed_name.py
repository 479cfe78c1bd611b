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
        package = module.partition(".")[0]
        if package not in _PACKAGES or isinstance(statement.names, cst.ImportStar):
            return
        for alias in statement.names:
            name = f"{module}.{dotted_name(alias.name)}"
            removed = _removed(package).get(name)
            tier = tier_since(self.facts, package, removed) if removed is not None else None
            if removed is None or tier is None or is_versioned(self.facts, statement, raises="ImportError"):
                continue
            target = self.facts.target(package).version.minor
            instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
            self.report(alias, f"`{name}` is gone since {package} {removed} (target: {target}){instead}", tier=tier)


@cache
def _removed(package: str) -> dict[str, str]:
    """Since when names of a package are gone."""
    tables = (table(name).get(package, {}).get("removed", {}) for name in ("removed-names", "package-api"))
    return {name: since for found in tables for since, names in found.items() for name in names}
