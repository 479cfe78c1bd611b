from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import add_import, join, wrap

_SAME = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "requires_grad_"}
_COPY = re.compile(
    r"target|teacher|ema|momentum|(?:^|_)(?:old|ref|reference|frozen|key|avg|slow)(?:$|_)", re.IGNORECASE
)


class AliasedTargetNetwork(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        key, source = self.names.key(assign.targets[0].target), self._source(assign.value)
        if not key or source is None or not _COPY.search(key.rpartition(".")[2]):
            return
        other = self._twin(assign, key, self.names.key(source))
        if not other:
            return
        imported = add_import(self.code, self.tree.module, "copy")
        self.report(
            assign.value,
            f"`{key}` and `{other}` are one module: loading one's weights into the other does nothing",
            repair=Repair(
                "copy the module", join(wrap(self.code, source, "copy.deepcopy(", ")"), imported), Applicability.UNSAFE
            ),
        )

    def _source(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """The name whose module a value is: `model`, `model.to(device)`."""
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in _SAME:
            value = value.func.value
        return value if self.names.key(value) not in {"", "None"} else None

    def _twin(self, assign: cst.Assign, key: str, source: str) -> str:
        """The other name of the module: what the value is called, or what was given it under another one before."""
        owner = self.tree.owner(assign)
        others = [source]
        for each in self.tree.own(owner, cst.Assign):
            if each is assign or len(each.targets) != 1:
                continue
            origin = self._source(each.value)
            name = self.names.key(each.targets[0].target)
            if origin is not None and name and name != source and self.names.key(origin) == source:
                others.append(name)
            if name in {source, key}:  # given something else in between
                return ""
        return next((name for name in reversed(others) if name != key and self._loads(assign, key, name)), "")

    def _loads(self, assign: cst.Assign, key: str, other: str) -> cst.Call | None:
        """The call that loads the state of one into the other, which tells that they are meant to be two."""
        room = self.tree.enclosing_class(assign) if key.startswith("self.") else self.tree.owner(assign)
        if room is None:
            return None
        for call in self.tree.within(room, cst.Call):
            if (
                self.names.method(call) != "load_state_dict"
                or not isinstance(call.func, cst.Attribute)
                or not call.args
            ):
                continue
            given = call.args[0].value
            loaded = (
                self.names.key(given.func.value)
                if isinstance(given, cst.Call) and isinstance(given.func, cst.Attribute)
                else ""
            )
            if self.names.key(call.func.value) == key and loaded == other and self.names.method(given) == "state_dict":
                return call
        return None
