"""Lists, tuples and dicts as code spells them: the items written there, and those that code adds later."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree

Display = cst.List | cst.Tuple | cst.Dict | cst.ListComp | cst.DictComp

# what of a module others may keep: its parameters, or the modules in it
_HANDED_ON = {"parameters", "named_parameters", "modules", "children", "state_dict", "values", "items", "copy", "pop"}
_GROWING = {"append": 0, "insert": 1, "extend": 0}  # the position of what is added
_MOVING = {"to", "cuda"}
_GIVING = {
    "children",
    "modules",
    "named_children",
    "named_modules",
    "to",
    "cuda",
    "eval",
    "train",
    "requires_grad_",
    "items",
}
_SIZES = {
    "in_features",
    "out_features",
    "num_features",
    "in_channels",
    "out_channels",
    "hidden_size",
    "shape",
    "device",
}


def items(display: Display) -> list[cst.BaseExpression]:
    """The items that a display spells, of a dict its values."""
    match display:
        case cst.ListComp():
            return [display.elt]
        case cst.DictComp():
            return [display.value]
    return [each.value for each in display.elements]


def moves_items(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> bool:
    """Whether code in a class moves what is in the container that `key` names: in a loop over it, or by its subscript."""
    return _calls_items(tree, names, room, key, _MOVING)


def gives_parameters(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> bool:
    """Whether code in a class takes the parameters of what is in the container that `key` names."""
    return _calls_items(tree, names, room, key, {"parameters", "named_parameters"})


def _calls_items(tree: Tree, names: Names, room: cst.CSTNode, key: str, methods: set[str]) -> bool:
    callees = [call.func for call in tree.within(room, cst.Call) if names.method(call) in methods]
    receivers = [func.value for func in callees if isinstance(func, cst.Attribute)]
    if any(isinstance(each, cst.Subscript) and names.key(each.value) == key for each in receivers):
        return True
    for loop in tree.within(room, cst.For, cst.CompFor):
        body = loop if isinstance(loop, cst.For) else tree.parent(loop) or loop
        if any(names.key(each) == key for each in tree.within(loop.iter, cst.Attribute)):
            drawn = {each.value for each in tree.within(loop.target, cst.Name)}
            if any(
                isinstance(each, cst.Name) and each.value in drawn and tree.contains(body, each) for each in receivers
            ):
                return True
    return False


def keeps_chosen(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> bool:
    """Whether a class keeps one of what a container holds, or what is in that one, as an attribute.

    Directly (`self.net = self.nets[name]`), by names and methods of its own, or put together anew
    (`self.body = nn.Sequential(*list(net.children())[:-1])`).
    """
    chosen: list[cst.CSTNode] = [each for each in tree.within(room, cst.Subscript) if names.key(each.value) == key]
    calls = tree.within(room, cst.Call)
    chosen += [each for each in calls if names.method(each) == "get" and _is_of(names, each, key)]
    seen: set[cst.CSTNode] = set()
    while chosen:
        item = chosen.pop()
        if item in seen:
            continue
        seen.add(item)
        holder, function = _holder(tree, item), tree.function(item)
        if isinstance(holder, cst.Return) and function is not None:
            chosen += [each for each in calls if names.key(each.func) == f"self.{function.name.value}"]
        target = holder.targets[0].target if isinstance(holder, cst.Assign) else None
        if isinstance(target, cst.Attribute) and names.key(target) != key:
            return True
        if isinstance(target, cst.Name) and function is not None:
            uses = [each for each in tree.within(function, cst.Name) if each.value == target.value]
            chosen += [each for each in uses if each is not target]
    return False


def _is_of(names: Names, call: cst.Call, key: str) -> bool:
    return isinstance(call.func, cst.Attribute) and names.key(call.func.value) == key


def _holder(tree: Tree, item: cst.CSTNode) -> cst.CSTNode | None:
    """The statement that a module, or what is in it, goes to; None where it is only called, or asked for a size."""
    inner, above = item, tree.parent(item)
    while above is not None and not isinstance(above, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
        called = isinstance(above, cst.Call) and above.func is inner
        if called and not (isinstance(inner, cst.Attribute) and inner.attr.value in _GIVING):
            return None
        if isinstance(above, cst.Attribute) and above.attr.value in _SIZES:
            return None
        inner, above = above, tree.parent(above)
    return above


def added_to(tree: Tree, names: Names, room: cst.CSTNode, key: str) -> list[cst.BaseExpression]:
    """What code in a class or function puts into the container that `key` names."""
    found: list[cst.BaseExpression] = []
    for call in tree.within(room, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _GROWING and names.key(func.value) == key:
            place = _GROWING[func.attr.value]
            given = call.args[place].value if len(call.args) > place else None
            found += items(given) if isinstance(given, Display) else [given] if given is not None else []
    for assign in tree.within(room, cst.Assign):
        held = assign.targets[0].target
        if isinstance(held, cst.Subscript) and names.key(held.value) == key:
            found.append(assign.value)
    for grown in tree.within(room, cst.AugAssign):
        if names.key(grown.target) == key and isinstance(grown.value, Display):
            found += items(grown.value)
    return found


def meant_by(tree: Tree, names: Names, added: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
    """What the local names among the things added to one container stand for: modules, or displays as their items.

    Nothing for a name that is used for more than that, since the module may be registered there.
    """
    found: list[cst.BaseExpression] = []
    for name in dict.fromkeys(each for each in added if isinstance(each, cst.Name)):
        bound = names.bindings.lookup(name)
        values = [each.value for each in bound if each.kind is Kind.ASSIGN and each.value is not None and not each.path]
        if not isinstance(bound[0].scope if bound else None, cst.FunctionDef) or len(values) < len(bound):
            continue
        scope = bound[0].scope
        uses = [each for each in tree.within(scope, cst.Name) if each.value == name.value]
        if not all(each in added or _is_bound_alone(tree, each) or _stays(tree, names, each) for each in uses):
            continue
        for value in values:
            found += items(value) if isinstance(value, Display) else [value]
        if any(isinstance(value, Display) for value in values):
            found += added_to(tree, names, scope, name.value)
    return found


def holds_displays(tree: Tree, names: Names, added: list[cst.BaseExpression]) -> bool:
    """Whether some of the things added to a container are lists of their own, not what they hold."""
    for each in added:
        element = tree.parent(each)
        display = tree.parent(element) if element is not None else None
        arg = tree.parent(display) if isinstance(display, Display) else None
        if isinstance(arg, cst.Arg) and names.method(tree.parent(arg)) in {"append", "insert"}:
            return True
        bound = names.bindings.lookup(each) if isinstance(each, cst.Name) else []
        if any(isinstance(binding.value, Display) for binding in bound):
            return True
    return False


def _is_bound_alone(tree: Tree, name: cst.Name) -> bool:
    """Whether a name stands where it alone is given a value, or is the word behind a dot or of a keyword."""
    above = tree.parent(name)
    if isinstance(above, cst.Attribute):
        return above.attr is name
    if isinstance(above, cst.Arg):
        return above.keyword is name
    assign = tree.parent(above) if isinstance(above, cst.AssignTarget) else above
    return isinstance(assign, cst.AnnAssign) or (
        isinstance(assign, cst.Assign) and len(assign.targets) == 1 and above is not assign
    )


def _stays(tree: Tree, names: Names, name: cst.Name) -> bool:
    """Whether a use hands on nothing of what a name stands for: `layer.reset()`, `nn.init.zeros_(layer.bias)`."""
    inner: cst.CSTNode = name
    above = tree.parent(name)
    words = set[str]()
    while isinstance(above, cst.Attribute) and above.value is inner:
        words.add(above.attr.value)
        inner = above
        above = tree.parent(inner)
    if not words or words & _HANDED_ON:
        return False
    if isinstance(above, cst.Arg):
        return (names.call(tree.parent(above)) or "").startswith("torch.nn.init.")
    if isinstance(above, cst.Call) and above.func is inner:
        return isinstance(tree.parent(above), cst.Expr)
    return isinstance(above, cst.AssignTarget)
