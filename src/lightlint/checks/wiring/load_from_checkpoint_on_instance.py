from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import DATA_MODULE, MODULE
from lightlint.facts.compat import is_versioned, removal_tier
from lightlint.facts.values import Origin
from lightlint.facts.versions import Version
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace

_RAISES_SINCE = Version("2.1")
# parameters that are annotated as if they were instances: `model_class: Net`, `Model: Net`
_MEANS_CLASS = re.compile(r"(?i:cls|class|type|kind)|^_?[A-Z]\w*[a-z]")


class LoadFromCheckpointOnInstance(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "load_from_checkpoint":
            return
        name = self._instance_of(func.value)
        if name is None or is_versioned(self.facts, call):
            return
        tier = removal_tier(self.facts.lightning, _RAISES_SINCE)
        dropped = isinstance(self.tree.parent(call), cst.Expr)
        short = name.rpartition(".")[2]
        if tier is Tier.ERROR or (tier and not dropped):
            message = f"`load_from_checkpoint` is called on an instance of `{short}`, which raises since Lightning 2.1"
        elif dropped:
            message = f"`load_from_checkpoint` leaves the instance of `{short}` as it is, and what it returns is lost"
        else:
            return
        self.report(call, message, tier=tier or Tier.ERROR, repair=self._repair(func.value, short, dropped=dropped))

    def _instance_of(self, receiver: cst.BaseExpression) -> str | None:
        """The class of a receiver that surely is an instance of a LightningModule or a data module."""
        if isinstance(receiver, cst.Name) and self.classes.is_self(receiver):
            function = self.tree.function(receiver)
            node = self.tree.enclosing_class(receiver)
            if function is None or function.decorators or self.tree.class_of(function) is not node or node is None:
                return None
            name = self.names.defined(node)
        else:
            origin = self.values.constructor(receiver) or self._before(receiver)
            if origin is None or _MEANS_CLASS.search(self.names.key(receiver)):
                return None
            name = origin.name
            node = self.classes.local(name)
        if node is not None and self.classes.has_method(node, "load_from_checkpoint"):
            return None
        return name if self.classes.name_is_a(name, MODULE, DATA_MODULE) else None

    def _before(self, receiver: cst.BaseExpression) -> Origin | None:
        """What a name was made by, where it is bound anew to what is loaded: `model = model.load_from_checkpoint(path)`."""
        found = self.names.bindings.lookup(receiver) if isinstance(receiver, cst.Name) else []
        made = [each.value for each in found if self.names.method(each.value) != "load_from_checkpoint"]
        origins = [self.values.constructor(value) for value in made]
        plain = all(each.kind is Kind.ASSIGN and not each.path for each in found)
        return origins[0] if plain and len(origins) == 1 else None

    def _repair(self, receiver: cst.BaseExpression, name: str, *, dropped: bool) -> Repair | None:
        """Call it on the class, where that has its plain name here and the result is used."""
        if dropped or not isinstance(receiver, (cst.Name, cst.Attribute)):
            return None
        origin = self.values.constructor(receiver)
        made = origin.call.func if origin and origin.call else None
        if not isinstance(made, cst.Name) or made.value != name:
            return None
        return Repair(f"call it on `{name}`", replace(self.code, receiver, name), Applicability.UNSAFE)
