from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.versions import Version
from lightlint.fixes.edits import replace_argument_name
from lightlint.models.names.huggingface import ARGUMENTS, TRAINER
from lightlint.models.names.kinds import kind_of

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.finding import Tier

_LIBRARIES = ("transformers", "trl", "peft", "accelerate")
_TORCH_OF_TODAY = "2.4"  # what Transformers 5 asks for


class HuggingFaceRemovedArg(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Keywords that a Trainer, its arguments or an Accelerator no longer take."""
        for path, events in entry.calls.items():
            tables = _tables(path)
            for event in events if tables else ():
                for name in event.given.keywords:
                    yield from self._fault(event, name, tables)

    def _fault(self, event: Called, name: str, tables: tuple[tuple[str, str], ...]) -> Iterator[Fault]:
        for package, cls in tables:
            removed = _removed(package, cls).get(name)
            tier = self._tier(package, removed["in"]) if removed is not None else None
            if removed is None or tier is None or self.is_versioned(event):
                continue
            where = f"`{event.name}` has no argument `{name}` since {package} {removed['in']}"
            message = f"{where} (target: {self.facts.target(package).version.minor}){_instead(name, removed)}"
            yield Fault(event.said_at(name), message, tier, of_call=True, argument=name)
            return

    def _tier(self, package: str, since: str) -> Tier | None:
        """How bad it is; None where the version is out of sight, and others of the project are of older days."""
        target = self.facts.target(package)
        if target.source == "newest" and self._is_of_old_days():
            return None
        return removal_tier(target, Version(since))

    def _is_of_old_days(self) -> bool:
        """Whether a version beside it is held back, so that the newest of this one may not go with it."""
        pinned = [self.facts.target(each) for each in _LIBRARIES]
        old = [each for each in pinned if each.source != "newest" and each.upper is not None]
        return bool(old) or not self.facts.torch.may_be_at_least(_TORCH_OF_TODAY)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        arg = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Call) or not isinstance(arg, cst.Arg):
            return None
        for package, cls in _tables(self.names.of(node.func) or ""):
            removed = _removed(package, cls).get(fault.argument, {})
            new = removed.get("new")
            if new is not None and self.names.argument(node, new) is None:
                draft = replace_argument_name(self.code, arg, new)
                return Repair(f"rename to `{new}`", draft, writes=f"{package}>={removed['since']}")
        return None


def _tables(path: str) -> tuple[tuple[str, str], ...]:
    """The packages and classes whose arguments a class takes."""
    package, _, cls = path.rpartition(".")
    kind = kind_of(path)
    if path == "accelerate.Accelerator":
        return (("accelerate", "Accelerator"),)
    if kind == ARGUMENTS:
        shared = (("transformers", "TrainingArguments"),)
        return ((package, cls), *shared) if package == "trl" else shared
    if kind == TRAINER:
        return ((package, cls),) if package == "trl" else (("transformers", "Trainer"),)
    return ()


def _removed(package: str, cls: str) -> dict[str, Any]:
    found: dict[str, Any] = table("hugging-face-api").get(package, {}).get(cls, {})
    return found


def _instead(name: str, removed: dict[str, Any]) -> str:
    if "into" in removed:
        return f": `{removed['into']}` takes it" + (f" as `{removed['as']}`" if "as" in removed else "")
    if "new" in removed:
        return f": it is called `{removed['new']}`"
    return f": {removed['note']}" if "note" in removed else ""
