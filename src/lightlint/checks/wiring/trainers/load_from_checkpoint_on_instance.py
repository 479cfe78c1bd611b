from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace as changed
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import Class, Unknown, Value
from lightlint.values.training import Instance, Module

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_RAISES_SINCE = Version("2.1")
# parameters that are annotated as if they were instances: `model_class: Net`, `Model: Net`
_MEANS_CLASS = re.compile(r"(?i:cls|class|type|kind)|^_?[A-Z]\w*[a-z]")


class LoadFromCheckpointOnInstance(Check):
    asks_rest = frozenset(["load_from_checkpoint"])

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        tier = removal_tier(self.facts.lightning, _RAISES_SINCE)
        for event in entry.calls.get(".load_from_checkpoint", ()):
            made = event.receiver
            known = made is not None and made.kind in ("module", "data module") and isinstance(made.cls, Class)
            if made is None or not known or self._means_class(event) or self.is_versioned(event):
                continue
            call = self.node_of(event.site)
            dropped = call is not None and isinstance(self.tree.parent(call), cst.Expr)
            if dropped and tier is not Tier.ERROR and any(_may_be_part(each, made) for each in event.given.values()):
                continue  # the new instance is made around what this one holds, and the weights are loaded into it
            if tier is Tier.ERROR or (tier and not dropped):
                message = f"`load_from_checkpoint` is called on an instance of `{made.name}`, which raises since Lightning 2.1"
            elif dropped:
                message = (
                    f"`load_from_checkpoint` leaves the instance of `{made.name}` as it is, and what it returns is lost"
                )
            else:
                continue
            yield changed(Fault.at(event, message, tier=tier or Tier.ERROR), fixed_at=made.site)

    def _means_class(self, event: Called) -> bool:
        """Whether the instance stands for what a parameter is annotated as, which may be the class itself."""
        site = event.receiver.site if event.receiver is not None else None
        span = self.facts.rehearsed.span(site) if site is not None else None
        name, annotated, _ = self.facts.source.text[slice(*span)].partition(":") if span is not None else ("", "", "")
        return bool(annotated) and name.isidentifier() and _MEANS_CLASS.search(name) is not None

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Call it on the class, where that has its plain name here and the result is used."""
        made = self.node_of(fault.fixed_at) if fault.fixed_at is not None else None
        if not isinstance(node, cst.Call) or isinstance(self.tree.parent(node), cst.Expr):
            return None
        receiver = node.func.value if isinstance(node.func, cst.Attribute) else None
        if not isinstance(receiver, (cst.Name, cst.Attribute)) or not isinstance(made, cst.Call):
            return None
        if not isinstance(made.func, cst.Name) or f"instance of `{made.func.value}`" not in fault.message:
            return None
        name = made.func.value
        return Repair(f"call it on `{name}`", replace(self.code, receiver, name), Applicability.UNSAFE)


def _may_be_part(given: Value, holder: Instance) -> bool:
    """Whether a value is a module that an object holds, or something unknown there that may be one."""
    if isinstance(given, Module):
        return given is not holder and isinstance(holder, Module) and given in holder.modules()
    unknown = isinstance(given, Unknown) and not given.plain
    return unknown and any(each is given for each in holder.attributes.values())
