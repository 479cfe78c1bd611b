from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import AttributeSet, Backward, Called, Forward, OptimizerMade
from lightlint.explore.questions.queries import is_held
from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.objects.annotations import is_none
from lightlint.facts.objects.classes import NN_MODULE
from lightlint.facts.values.displays import (
    Display,
    added_to,
    gives_parameters,
    holds_displays,
    items,
    keeps_chosen,
    meant_by,
    moves_items,
)
from lightlint.finding import Applicability
from lightlint.fixes.repairs.containers import as_container, container_for
from lightlint.values.core import Mapping, Sequence, Site, Value
from lightlint.values.training import Module, Tensor, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_PARAMETRIC = re.compile(
    r"torch\.nn\.(?:Lazy)?(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w+Cell|\w+Norm\w*|Transformer\w*|Multihead\w+"
    r"|PReLU|Sequential|ModuleList|ModuleDict)$|torchvision\.models\.|torchmetrics\."
)
_OF_RANKING = re.compile(
    r"torchmetrics\..*?(?:Binary|Multiclass|Multilabel)?(?:AUROC|ROC|AveragePrecision|PrecisionRecallCurve)$"
)
"""Metrics that keep all they are given where they are told no `thresholds`."""
_CONTAINER = re.compile(r"torch\.nn\.(?:ModuleList|ModuleDict|Sequential)$")
_TAKING = {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "Compose"}
_GROWING = {"append", "extend", "insert"}
_REGISTERING = {"add_module", "register_module", "setattr", "__setattr__"}
_DEPTH = 3
_CASTS = {"to", "cuda", "double", "half"}
_OVERRIDES = {"parameters", "named_parameters", "state_dict", "_apply", "to", "modules", "named_modules", "children"}


class ModuleListNotRegistered(Check):
    def wants_passes(self) -> bool:
        """Whether the file gathers modules in a container that none of torch's takes over, and an attribute may hold one."""
        calls = self.tree.all(cst.Call)
        taking = (call for call in calls if self.names.method(call) in _TAKING)
        taken = {self.names.key(arg.value) for call in taking for arg in call.args}
        made = (call for call in calls if self.names.method(call)[:1].isupper() or self._is_of_torchvision(call))
        gathered = (call for call in made if self._is_gathered(call, taken))
        kept = self.facts.kept_values
        return any(map(kept.may_be_module, gathered)) and kept.may_hold(self._may_be_plain)

    def _may_be_plain(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be a plain container of modules."""
        made = self.names.call(value) if isinstance(value, cst.Call) else None
        if made is not None and (self.classes.local(made) or made.startswith("torch.")):
            return False
        return not self.facts.kept_values.is_scalar(value)

    def _is_of_torchvision(self, call: cst.Call) -> bool:
        return (self.names.call(call) or "").startswith("torchvision.models.")

    def _is_gathered(self, made: cst.Call, taken: set[str]) -> bool:
        above = self.tree.parent(made)
        if isinstance(above, cst.Lambda):
            return True  # which may make one for each of several things
        if isinstance(above, (cst.Element, cst.DictElement)):
            above = self.tree.parent(above)
        if isinstance(above, Display):
            holder = self.tree.parent(above)
            if isinstance(holder, cst.Arg):
                return self.names.method(self.tree.parent(holder)) not in _TAKING
            if isinstance(holder, cst.AugAssign):
                return self.names.key(holder.target) not in taken
            return not isinstance(holder, cst.Assign) or self.names.key(holder.targets[0].target) not in taken
        call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value in _GROWING:
            return self.names.key(call.func.value) not in taken
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        return isinstance(target, cst.Subscript) and self.names.key(target.value) not in taken

    def visit_Assign(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target
        if isinstance(target, cst.Attribute) and len(assign.targets) == 1:
            self._judge(target, assign.value)

    def _judge(self, target: cst.Attribute, value: cst.BaseExpression) -> None:
        node, name = self.classes.self_class(target.value), target.attr.value
        held = (self._display(value) or self._made_by(value)) if node is not None else None
        if held is None or node is None or not self.classes.is_a(node, NN_MODULE):
            return
        family = [node, *self.hooks.subclasses.get(node, ())]
        if any(self._is_registered(each, name, value) for each in family):
            return
        added = [item for each in family for item in added_to(self.tree, self.names, each, f"self.{name}")]
        if isinstance(value, cst.Name):
            added += added_to(self.tree, self.names, self.tree.owner(value), value.value)
        held_items = [*items(held), *added, *meant_by(self.tree, self.names, added)]
        parametric = [made for item in held_items if self._has_parameters(made := self._made(item))]
        constant = [made for made in parametric if made not in held_items and self._holds_constants(made)]
        if constant and len(constant) == len(parametric):
            return  # moved by hand, with nothing to train, and nothing to save that it is not made with
        # metrics have nothing to train and save nothing by default: to be moved is all they need
        if all(map(self._is_metric, parametric)) and (
            not parametric
            or any(moves_items(self.tree, self.names, each, f"self.{name}") for each in family)
            or self._are_moved(target)
            or (all(map(self._keeps_inputs, parametric)) and not any(self._logs_items(each, name) for each in family))
        ):
            return
        placed = all(self._made(item) is not item for item in held_items if self._has_parameters(self._made(item)))
        if placed and any(gives_parameters(self.tree, self.names, each, f"self.{name}") for each in family):
            return  # trained by an optimizer of their own, and moved where they are made
        if self.runs_right(target, AttributeSet, _hides):
            return
        kind = type(held).__name__.removesuffix("Comp").lower()
        self.report(
            target,
            f"`self.{name}` is a plain {kind}: the modules in it are not trained, not moved and not saved",
            repair=None if holds_displays(self.tree, self.names, added) else self._repair(value, held),
        )

    def _are_moved(self, target: cst.Attribute) -> bool:
        """Whether a rehearsal moves what a container holds by itself."""
        for _, path, event in self.happened(target, AttributeSet):
            moved = [each.receiver for each in path.of(Called) if each.path in _CASTS]
            if any(is_held(event.value, each) for each in moved if each is not None):
                return True
        return False

    def _display(self, value: cst.BaseExpression) -> Display | None:
        """The display that a value is, or that the one name it is was made of."""
        if isinstance(value, cst.Name):
            found = [each for each in self.names.bindings.lookup(value) if not self._extends(each)]
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            if only is None:
                return None
            function = self.tree.function(value)
            inside = (
                [name for name in self.tree.within(function, cst.Name) if name.value == value.value] if function else []
            )
            calls = [self.tree.parent(name) for name in inside]
            if any(isinstance(each, cst.Arg) for each in calls):
                return None
            value = only.value if only.value is not None else value
        made = self.names.call(value) if isinstance(value, cst.Call) and not value.args else None
        if made in {"builtins.list", "builtins.dict"}:
            return cst.List([]) if made == "builtins.list" else cst.Dict([])
        return value if isinstance(value, Display) else None

    def _made_by(self, value: cst.BaseExpression) -> Display | None:
        """The display that a function of this file, which is called for the attribute, gives back in every case."""
        callee = self.hooks.callee(value) if isinstance(value, cst.Call) else None
        returns = self.values.returns(callee) if callee is not None and not callee.decorators else []
        only = returns[0] if len(returns) == 1 else None
        return only if isinstance(only, Display) else None

    def _extends(self, binding: Binding) -> bool:
        """Whether a binding is `blocks += [...]`."""
        above = self.tree.parent(binding.site)
        return binding.kind is Kind.AUGMENT and isinstance(above, cst.AugAssign) and isinstance(above.value, Display)

    def _is_registered(self, node: cst.ClassDef, name: str, value: cst.BaseExpression) -> bool:
        """Whether the class may take care of the modules in its own way, or replaces the container by a registered one."""
        calls = self.tree.within(node, cst.Call)
        if any(self.names.method(call) in _REGISTERING or self._registers(call) for call in calls):
            return True
        if any(self.names.key(each.target) == f"self.{name}" for each in self.tree.within(node, cst.Del)):
            return True  # its weights were taken out of it
        chosen = keeps_chosen(self.tree, self.names, node, f"self.{name}")
        if chosen or any(self.classes.has_method(node, each) for each in _OVERRIDES):
            return True
        sources = self.classes.attribute_values(node, name)
        if any(each is not value and not isinstance(each, (cst.List, cst.Dict, cst.Name)) for each in sources):
            return True
        for arg in self.tree.within(node, cst.Arg):
            handed = _handed(arg.value)
            if self.names.key(handed) == f"self.{name}" and any(map(self._takes_modules, self._given_to(arg))):
                return True
        return False

    def _registers(self, call: cst.Call) -> bool:
        """Whether a call registers a parameter that was made before, as one of a module in the container may be."""
        given = self.names.argument(call, "param", 1) if self.names.method(call) == "register_parameter" else None
        return (
            given is not None and not isinstance(given.value, cst.Call) and self.names.constant(given.value) is not None
        )

    def _given_to(self, arg: cst.Arg) -> Iterator[cst.CSTNode | None]:
        """The calls that an argument stands in, and those that are given the name which what these make of it gets."""
        statement = self.tree.statement(arg)
        for each in self.tree.ancestors(arg):
            if isinstance(each, cst.Call):
                yield each
            if each is statement:
                break
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if isinstance(target, cst.Name):
            for other in self.tree.within(self.tree.owner(arg), cst.Arg):
                if isinstance(other.value, cst.Name) and other.value.value == target.value:
                    yield self.tree.parent(other)

    def _takes_modules(self, call: cst.CSTNode | None) -> bool:
        """Whether a call takes care of the modules it is given: a container, or a module's class, or base, that may keep them."""
        if self.names.method(call) == "__init__":
            return True
        name = self.names.call(call) or ""
        if name == "torch.func.stack_module_state":
            return True  # their weights are copied out of them, to be trained there
        return bool(_CONTAINER.match(name)) or (bool(name) and self.classes.name_is_a(name, NN_MODULE))

    def _made(self, item: cst.BaseExpression) -> cst.BaseExpression:
        """What an item is before it is moved or cast."""
        match item:
            case cst.Call(
                func=cst.Attribute(attr=cst.Name("to")), args=[cst.Arg(value=cst.SimpleString() as where)]
            ) if where.evaluated_value == "meta":
                return item  # a form without weights
            case cst.Call(func=cst.Attribute(value=made, attr=cst.Name(method))) if method in _CASTS:
                return made
        return item

    def _has_parameters(self, item: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether an item surely is a module made for this container that has parameters, or state of a metric."""
        if not isinstance(item, cst.Call):
            return False
        name = self.names.call(item) or ""
        if isinstance(item.func, cst.Subscript):
            names = self._choices(item.func)
            return bool(names) and all(_PARAMETRIC.match(each) and each != "torch.nn.Sequential" for each in names)
        if _PARAMETRIC.match(name):
            return name != "torch.nn.Sequential" or any(
                _PARAMETRIC.match(self.names.call(call) or "") for call in self._parts(item) if call is not item
            )
        if self.hooks.callee(item) is not None:
            return self._gives_modules(item, depth)
        local = self.classes.local(name)
        if local is None or not self.classes.is_a(local, NN_MODULE):
            return False
        made = {self.names.call(call) or "" for call in self.tree.within(local, cst.Call)}
        return any(_PARAMETRIC.match(each) or each == "torch.nn.Parameter" for each in made)

    def _holds_constants(self, item: cst.BaseExpression) -> bool:
        """Whether a module of this file has no parameters but such that nothing trains."""
        local = self.classes.local(self.names.call(item) or "") if isinstance(item, cst.Call) else None
        if local is None:
            return False
        made = [(call, self.names.call(call) or "") for call in self.tree.within(local, cst.Call)]
        own = [call for call, name in made if name == "torch.nn.Parameter"]
        asked = [self.names.argument(call, "requires_grad", 1) for call in own]
        fixed = all(each is not None and dotted_name(each.value) == "False" for each in asked)
        return bool(own) and fixed and not any(_PARAMETRIC.match(name) for _, name in made)

    def _parts(self, item: cst.Call) -> list[cst.Call]:
        """The calls in a call, and those that make what it is given by name: `nn.Sequential(conv, *layers)`."""
        rooms: list[cst.CSTNode] = [item]
        for held in (arg.value for arg in item.args if isinstance(arg.value, cst.Name)):
            rooms += [each.value for each in self.names.bindings.lookup(held) if each.value is not None]
            rooms += added_to(self.tree, self.names, self.tree.owner(held), held.value)
        return [call for room in rooms for call in self.tree.within(room, cst.Call)]

    def _gives_modules(self, item: cst.Call, depth: int) -> bool:
        """Whether a helper of this file makes such a module in each call, and keeps it nowhere."""
        helper = self.hooks.callee(item)
        if helper is None or depth > _DEPTH or not all(map(self._is_static, helper.decorators)):
            return False
        targets = self.tree.within(helper.body, cst.AssignTarget, cst.AnnAssign)
        if any(isinstance(each.target, (cst.Attribute, cst.Subscript)) for each in targets):
            return False
        returns = self.values.returns(helper)
        sources = [self.facts.reaching.sources(each) if each is not None else [] for each in returns]
        return bool(returns) and all(
            bool(each) and all(self._has_parameters(self._made(one), depth + 1) for one in each) for each in sources
        )

    def _is_static(self, decorator: cst.Decorator) -> bool:
        return self.names.of(decorator.decorator) in {"builtins.staticmethod", "builtins.classmethod"}

    def _choices(self, chosen: cst.Subscript) -> list[str]:
        """The classes that `classes[name]` can be, none where some are out of sight."""
        held = self.facts.dicts.held(chosen.value)
        known = held.values.values() if held and held.perhaps == frozenset() else ()
        return [self.names.of(each) or "" for each in known]

    def _is_metric(self, item: cst.BaseExpression) -> bool:
        """Whether an item with parameters or state is a metric of torchmetrics."""
        func = item.func if isinstance(item, cst.Call) else None
        made = self._choices(func) if isinstance(func, cst.Subscript) else [self.names.of(func) or ""]
        return all(each.startswith("torchmetrics.") for each in made)

    def _keeps_inputs(self, metric: cst.BaseExpression) -> bool:
        """Whether a metric's state are lists of what it is given, which lie where this lies: nothing of it is to be moved."""
        if not isinstance(metric, cst.Call) or not _OF_RANKING.search(self.names.of(metric.func) or ""):
            return False
        bins = self.names.argument(metric, "thresholds")
        placed = [arg for arg in metric.args if arg.keyword is None]
        return len(placed) < 2 and not self.names.has_star(metric) and (bins is None or is_none(bins.value))

    def _logs_items(self, node: cst.ClassDef, name: str) -> bool:
        """Whether the class may log metrics themselves, which Lightning looks for among what is registered."""
        calls = self.tree.within(node, cst.Call)
        given = [self.names.argument(call, "value", 1) for call in calls if self.names.method(call) == "log"]
        given += [self.names.argument(call, "dictionary", 0) for call in calls if self.names.method(call) == "log_dict"]
        return any(self._may_be_item(each.value, f"self.{name}") for each in given if each is not None)

    def _may_be_item(self, value: cst.BaseExpression, key: str) -> bool:
        bound = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        told = [value, *(each.value for each in bound if each.value is not None)]
        parts = [each.value if isinstance(each, cst.Subscript) else each for each in told]
        return any(each.kind is Kind.LOOP for each in bound) or any(self.names.key(each) == key for each in parts)

    def _repair(self, value: cst.BaseExpression, held: Display) -> Repair | None:
        container = container_for(held)
        if container is None:
            return None
        draft = as_container(self.facts, value, container)
        return Repair(f"make it an `{container}`", draft, Applicability.UNSAFE) if draft is not None else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules in plain containers that a forward pass uses, or that get gradients and are in no optimizer of the rest."""
        for path in entry.paths:
            hiding = [event for event in path.of(AttributeSet) if _hides(event) and not event.object.escaped]
            trained, given = (_trained(path) | _used(path), _given(path)) if hiding else (set(), set())
            for event in hiding:
                held = _modules_in(event.value)
                hidden = _weights_of(held) - _registered(event.object)
                told = trained & hidden and not given & hidden and not _hides_on_purpose(event.value)
                if told and not hidden & _seen_by_others(path, held):
                    kind = "dict" if isinstance(event.value, Mapping) else "list"
                    message = f"`self.{event.name}` is a plain {kind}: the modules in it are not trained, not moved and not saved"
                    yield Fault.of(event, message)


def _handed(value: cst.BaseExpression) -> cst.BaseExpression:
    """What an argument hands on: a container, or it too where it is an item of one, or its `values()`."""
    match value:
        case cst.Subscript(value=held):
            return held
        case cst.Call(func=cst.Attribute(value=held, attr=cst.Name("values" | "items"))):
            return held
    return value


def _modules_in(value: Value) -> list[Module]:
    """The modules of a container that holds nothing else."""
    held = [*value.items.values()] if isinstance(value, Mapping) else value.items if isinstance(value, Sequence) else []
    modules = [each for each in held if isinstance(each, Module)]
    return modules if len(modules) == len(held) else []


def _weights_of(held: list[Module]) -> set[Tensor]:
    """The parameters that modules have to train: not the one that stands for those of a module that is only said to be one,
    for a loss has none, nor what lies on `meta`, a form that is given its weights with each call."""
    trained = (p for each in held for p in each.parameters() if p.requires_grad and p.device != "meta")
    return {p for p in trained if p.owner is None or not p.owner.assumed}


def _registered(holder: Value) -> set[Tensor]:
    """The parameters that a module has, under whatever name."""
    return set(holder.parameters()) if isinstance(holder, Module) else set()


def _seen_by_others(path: Path, held: list[Module]) -> set[Tensor]:
    """The parameters that modules have that are no part of some others."""
    inner = {part for each in held for part in each.modules()}
    outer = {event.object for event in path.of(AttributeSet)} | {event.module for event in path.of(Forward)}
    modules = [each for each in outer if isinstance(each, Module) and each not in inner]
    return {parameter for each in modules for parameter in each.parameters()}


def _hides(event: AttributeSet) -> bool | None:
    """Whether a module keeps modules with parameters where it does not see them, None where it keeps none."""
    held = [each for each in _modules_in(event.value) if each.parameters()]
    if not isinstance(event.object, Module) or not held:
        return None
    return not set(event.object.modules()) & set(held)


def _hides_on_purpose(value: Value) -> bool:
    """Whether a container of one module, made elsewhere, is only asked for that: how a second reference is kept from torch."""
    if not isinstance(value, Sequence) or len(value.items) != 1 or value.gone_over or value.site is None:
        return False
    return bool(value.taken) and value.taken <= {0, -1} and not _stands_in(_modules_in(value)[0].site, value.site)


def _stands_in(inner: Site | None, outer: Site) -> bool:
    """Whether a place is a part of another."""
    return inner is not None and inner[0] == outer[0] and outer[1:3] <= inner[1:3] and inner[3:] <= outer[3:]


def _given(path: Path) -> set[Tensor]:
    """The parameters that optimizers have."""
    return {each for event in path.of(OptimizerMade) for each in event.optimizer.parameters}


def _trained(path: Path) -> set[Tensor]:
    """Parameters that get gradients and are in no optimizer, where all optimizers are in sight."""
    made = path.of(OptimizerMade)
    if not made or any(event.optimizer.more or event.optimizer.escaped for event in made):
        return set()
    return {each for event in path.of(Backward) for each in event.parameters} - _given(path)


def _used(path: Path) -> set[Tensor]:
    """Parameters that the forward passes of modules need, which nothing in sight trains."""
    results = [event.result for event in path.of(Forward) if event.training] if not path.of(OptimizerMade) else []
    return {p for result in results for tensor in tensors_in(result) for p in tensor.parameters if not p.escaped}
