from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.classes import NN_MODULE
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, join, replace, wrap

_PARAMETRIC = re.compile(
    r"torch\.nn\.(?:Lazy)?(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w+Cell|\w+Norm\w*|Transformer\w*|Multihead\w+"
    r"|PReLU|Sequential|ModuleList|ModuleDict)$|torchvision\.models\.|torchmetrics\."
)
_CONTAINER = re.compile(r"torch\.nn\.(?:ModuleList|ModuleDict|Sequential)$")
_REGISTERING = {"add_module", "register_module", "setattr", "__setattr__"}
_OVERRIDES = {"parameters", "named_parameters", "state_dict", "_apply", "to", "modules", "named_modules", "children"}
_GROWING = {"append": 0, "insert": 1, "extend": 0}
_Display = cst.List | cst.Tuple | cst.Dict | cst.ListComp | cst.DictComp


class ModuleListNotRegistered(Check):
    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1:
            return
        target = assign.targets[0].target
        if isinstance(target, cst.Attribute):
            self._judge(target, assign.value)

    def _judge(self, target: cst.Attribute, value: cst.BaseExpression) -> None:
        node, name = self.classes.self_class(target.value), target.attr.value
        if node is None or not self.classes.is_a(node, NN_MODULE):
            return
        held = self._display(value)
        if held is None or self._is_registered(node, name, value):
            return
        items = [*_items(held), *self._added(node, f"self.{name}")]
        if isinstance(value, cst.Name):
            items += self._added(self.tree.owner(value), value.value)
        if not any(map(self._has_parameters, items)):
            return
        kind = (
            "dict" if isinstance(held, (cst.Dict, cst.DictComp)) else "tuple" if isinstance(held, cst.Tuple) else "list"
        )
        self.report(
            target,
            f"`self.{name}` is a plain {kind}: the modules in it are not trained, not moved and not saved",
            repair=self._repair(value, held),
        )

    def _display(self, value: cst.BaseExpression) -> _Display | None:
        """The display that a value is, or that the one name it is was made of."""
        if isinstance(value, cst.Name):
            found = [each for each in self.names.bindings.lookup(value) if not self._extends(each)]
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            function = self.tree.function(value)
            inside = (
                [name for name in self.tree.within(function, cst.Name) if name.value == value.value] if function else []
            )
            calls = [self.tree.parent(name) for name in inside]
            if only is None or any(isinstance(each, cst.Arg) for each in calls):
                return None
            value = only.value if only.value is not None else value
        if (
            isinstance(value, cst.Call)
            and self.names.call(value) in {"builtins.list", "builtins.dict"}
            and not value.args
        ):
            return cst.List([]) if self.names.call(value) == "builtins.list" else cst.Dict([])
        return value if isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)) else None

    def _extends(self, binding: Binding) -> bool:
        """Whether a binding is `blocks += [...]`."""
        above = self.tree.parent(binding.site)
        return binding.kind is Kind.AUGMENT and isinstance(above, cst.AugAssign) and isinstance(above.value, _Display)

    def _is_registered(self, node: cst.ClassDef, name: str, value: cst.BaseExpression) -> bool:
        """Whether the class may take care of the modules in its own way, or replaces the container by a registered one."""
        if any(self.names.method(call) in _REGISTERING for call in self.tree.within(node, cst.Call)):
            return True
        if any(self.classes.has_method(node, each) for each in _OVERRIDES):
            return True
        sources = self.classes.attribute_values(node, name)
        if any(each is not value and not isinstance(each, (cst.List, cst.Dict, cst.Name)) for each in sources):
            return True
        wrapped = [arg for arg in self.tree.within(node, cst.Arg) if self._is_or_holds(arg.value, f"self.{name}")]
        return any(self._takes_modules(self.tree.parent(arg)) for arg in wrapped)

    def _is_or_holds(self, value: cst.BaseExpression, key: str) -> bool:
        """Whether a value is the container, or one item of it."""
        return self.names.key(value.value if isinstance(value, cst.Subscript) else value) == key

    def _takes_modules(self, call: cst.CSTNode | None) -> bool:
        """Whether a call registers the modules it is given: a container, or a module's class that may keep them."""
        name = self.names.call(call) or ""
        return bool(_CONTAINER.match(name)) or (bool(name) and self.classes.name_is_a(name, NN_MODULE))

    def _added(self, room: cst.CSTNode, key: str) -> list[cst.BaseExpression]:
        """What code in a class or function puts into a container."""
        found: list[cst.BaseExpression] = []
        for call in self.tree.within(room, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in _GROWING and self.names.key(func.value) == key:
                place = _GROWING[func.attr.value]
                given = call.args[place].value if len(call.args) > place else None
                found += _items(given) if isinstance(given, _Display) else [given] if given is not None else []
        for assign in self.tree.within(room, cst.Assign):
            held = assign.targets[0].target
            if isinstance(held, cst.Subscript) and self.names.key(held.value) == key:
                found.append(assign.value)
        for grown in self.tree.within(room, cst.AugAssign):
            if self.names.key(grown.target) == key and isinstance(grown.value, _Display):
                found += _items(grown.value)
        return found

    def _has_parameters(self, item: cst.BaseExpression) -> bool:
        """Whether an item surely is a module made for this container that has parameters, or state of a metric."""
        if isinstance(item, cst.Call) and self.names.method(item) in {"to", "cuda", "double", "half"}:
            item = item.func.value if isinstance(item.func, cst.Attribute) else item
        if not isinstance(item, cst.Call):
            return False
        name = self.names.call(item) or ""
        if _PARAMETRIC.match(name):
            return name != "torch.nn.Sequential" or any(
                _PARAMETRIC.match(self.names.call(call) or "")
                for call in self.tree.within(item, cst.Call)
                if call is not item
            )
        local = self.classes.local(name)
        if local is None or not self.classes.is_a(local, NN_MODULE):
            return False
        made = {self.names.call(call) or "" for call in self.tree.within(local, cst.Call)}
        return any(_PARAMETRIC.match(each) or each == "torch.nn.Parameter" for each in made)

    def _repair(self, value: cst.BaseExpression, held: _Display) -> Repair | None:
        is_list = isinstance(held, (cst.List, cst.ListComp))
        if not is_list and not (
            isinstance(held, cst.Dict)
            and all(isinstance(e, cst.DictElement) and isinstance(e.key, cst.SimpleString) for e in held.elements)
        ):
            return None
        last = "ModuleList" if is_list else "ModuleDict"
        scope = self.tree.scope(value)
        room = next((r for r in ("nn", "torch.nn") if self.names.written_in(r, scope) == "torch.nn"), None)
        if room is None:
            return None
        empty = isinstance(value, cst.Call) or (isinstance(value, (cst.List, cst.Dict)) and not value.elements)
        draft: Draft | None
        draft = (
            replace(self.code, value, f"{room}.{last}()") if empty else wrap(self.code, value, f"{room}.{last}(", ")")
        )
        return Repair(f"make it an `{last}`", join(draft), Applicability.UNSAFE)


def _items(display: _Display) -> list[cst.BaseExpression]:
    match display:
        case cst.ListComp():
            return [display.elt]
        case cst.DictComp():
            return [display.value]
    return [each.value for each in display.elements]
