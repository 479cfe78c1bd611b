from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.versions import Version
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import wrap

_PARSERS = {"parse_args", "parse_known_args"}
_NUMPY = {
    "mean",
    "std",
    "max",
    "min",
    "median",
    "average",
    "sum",
    "array",
    "asarray",
    "float64",
    "float32",
    "int64",
    "zeros",
}
_NUMPY_NAMES = {f"numpy.{name}" for name in _NUMPY} | {"numpy.random.get_state"}
_SCALARS = {f"numpy.{name}" for name in ("mean", "std", "median", "average", "array", "asarray")}
_DEPTH = 2
_PATHS = {"pathlib.Path", "pathlib.PosixPath", "collections.defaultdict"}


class CheckpointNonTensorPayload(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if (
            self.names.call(call) != "torch.save"
            or not call.args
            or not self.facts.torch.may_be_at_least(Version("2.6"))
        ):
            return
        loads = [each for each in self.tree.all(cst.Call) if self.names.call(each) == "torch.load"]
        open_loads = [each for each in loads if self.names.argument(each, "weights_only") is None]
        if (loads and not open_loads) or any(name.value == "add_safe_globals" for name in self.tree.all(cst.Name)):
            return
        for item in self._items(call.args[0].value):
            what = self._refused(item)
            if what:
                self.report(
                    item,
                    f"`{self.code.text_of(item)}` is {what}, which `torch.load` of torch 2.6 and newer refuses",
                    tier=None if open_loads else Tier.NOTE,
                    repair=self._repair(item, what),
                )

    def _items(self, value: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
        """What a checkpoint holds: the values of a dict, or the one thing that is saved."""
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            made = only.value if only is not None else None
            if made is not None and (isinstance(made, cst.Dict) or self.names.call(made) == "builtins.dict"):
                return [*self._items(made), *self._added(value)]
            if len(found) == 1 and found[0].kind is Kind.PARAMETER and isinstance(found[0].scope, cst.FunctionDef):
                function = found[0].scope
                calls = self.hooks.calls_of.get(function, ()) if depth < _DEPTH else ()
                given = [self.values.given(function, call, value.value) for call in calls]
                return [item for each in given if each is not None for item in self._items(each, depth + 1)]
        if isinstance(value, cst.Dict):
            return [each.value for each in value.elements if isinstance(each, cst.DictElement)]
        if isinstance(value, cst.Call) and self.names.call(value) == "builtins.dict":
            return [arg.value for arg in value.args if arg.keyword is not None]
        return [value]

    def _added(self, name: cst.Name) -> list[cst.BaseExpression]:
        """What `state["args"] = args` puts into a dict that is saved under its name."""
        return [
            assign.value
            for assign in self.tree.own(self.tree.owner(name), cst.Assign)
            for target in assign.targets
            if isinstance(target.target, cst.Subscript) and self.names.key(target.target.value) == name.value
        ]

    def _refused(self, value: cst.BaseExpression, depth: int = 0) -> str:
        """What a value surely is that the default of `torch.load` does not take, empty for what it may take."""
        if isinstance(value, cst.Call):
            name = self.names.call(value) or ""
            if self.names.method(value) in _PARSERS:
                return "an argparse Namespace"
            if name in _NUMPY_NAMES or self._is_of_array(value):
                return "a numpy value"
            if name == "types.SimpleNamespace":
                return "a SimpleNamespace"
            return "a path" if name in _PATHS and "Path" in name else "a defaultdict" if name in _PATHS else ""
        if self.values.is_module(value):
            return "a whole module"
        if not isinstance(value, cst.Name) or depth > 3:
            return ""
        if self._is_list_of_arrays(value):
            return "a list of numpy values"
        kinds: set[str] = set()
        for each in self.facts.reaching.bindings(value):
            if each.kind is Kind.PARAMETER and isinstance(each.scope, cst.FunctionDef):
                function = each.scope
                calls = self.hooks.calls_of.get(function, ())
                given = [self.values.given(function, call, each.name) for call in calls] or [None]
                kinds |= {self._refused(one, depth + 1) if one is not None else "" for one in given}
            elif each.kind is Kind.ASSIGN and not each.path and isinstance(each.value, cst.Call):
                kinds.add(self._called(each.value, depth))
            elif each.kind is Kind.ASSIGN and not each.path and isinstance(each.value, cst.Name):
                kinds.add(self._refused(each.value, depth + 1))
            else:
                kinds.add("")
        return kinds.pop() if len(kinds) == 1 else ""

    def _is_list_of_arrays(self, name: cst.Name) -> bool:
        """Whether a name holds a list that numpy values are appended to."""
        bound = self.names.bindings.lookup(name)
        if len(bound) != 1 or not isinstance(bound[0].value, cst.List) or bound[0].path:
            return False
        return any(
            self.names.method(call) == "append"
            and isinstance(call.func, cst.Attribute)
            and self.names.key(call.func.value) == name.value
            and self.names.call(call.args[0].value if call.args else None) in _SCALARS
            for call in self.tree.own(self.tree.owner(name), cst.Call)
        )

    def _is_of_array(self, call: cst.Call) -> bool:
        """Whether a call reduces what a numpy function gives: `np.array(losses).mean()`."""
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value in _NUMPY
            and self.names.call(func.value) in _NUMPY_NAMES
        )

    def _called(self, call: cst.Call, depth: int) -> str:
        callee = self.hooks.callee(call)
        if callee is None:
            return self._refused(call, depth + 1)
        kinds = {self._refused(each, depth + 1) if each is not None else "" for each in self.values.returns(callee)}
        return kinds.pop() if len(kinds) == 1 else ""

    def _repair(self, item: cst.BaseExpression, what: str) -> Repair | None:
        if what == "an argparse Namespace":
            return Repair("save it as a dict", wrap(self.code, item, "vars(", ")"), Applicability.UNSAFE)
        if what == "a path":
            return Repair("save it as a string", wrap(self.code, item, "str(", ")"), Applicability.UNSAFE)
        return None
