"""Which keys of a dict may change after it was made: by assignments, methods, and in code that gets the dict or a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from lightlint.facts.code.bindings import Binding
from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import Classes
from lightlint.facts.values.calls import is_bound

_READING = {"get", "items", "keys", "values", "copy"}
_LOOKING = {f"builtins.{name}" for name in ("print", "len", "str", "repr", "isinstance", "type", "bool")}
_LOOKING |= {"copy.deepcopy"}
_READERS = ("json.", "pprint.", "yaml.", "logging.", "torch.", "lightning.", "wandb.", "os.")
_TELLING = {"save_hyperparameters", "log_hyperparams", "info", "debug"}
_DEPTH = 4
_NONE: frozenset[str] = frozenset()
Changed = frozenset[str] | None  # the first keys that may change, None for any


class DictChanges:
    """Changes of the dicts of one file. `value_in` gives the value of a key in a dict as it is made, `values` all of them."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        hooks: Hooks,
        value_in: Callable[[cst.BaseExpression, str], cst.BaseExpression | None],
        values: Callable[[cst.BaseExpression], list[cst.BaseExpression] | None],
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._value_in = value_in
        self._values = values
        self._known: dict[tuple[cst.CSTNode, str, cst.BaseExpression | None, int], Changed] = {}

    def of_binding(self, binding: Binding, made: cst.BaseExpression | None, depth: int = 0) -> Changed:
        """What may change in the dict that a name is bound to, which an expression made."""
        key = (binding.site, binding.name, made, depth)
        if key not in self._known:
            self._known[key] = self._in_binding(binding, made, depth)
        return self._known[key]

    def _in_binding(self, binding: Binding, made: cst.BaseExpression | None, depth: int) -> Changed:
        bindings, site = self._names.bindings, binding.site
        uses = (
            use
            for use in self._tree.all(cst.Name)
            if use.value == binding.name
            and use is not site
            and self._is_use(use)
            and bindings.home(use.value, self._tree.scope(use)) is binding.scope
        )
        return self._joined((use, made, depth) for use in uses)

    def of_attribute(self, name: str, made: cst.BaseExpression | None, depth: int = 0) -> Changed:
        """What may change in the dict that an attribute holds."""
        uses = (each for each in self._tree.all(cst.Attribute) if each.attr.value == name)
        return self._joined((use, made, depth) for use in uses if not self._is_target(use))

    def _is_use(self, name: cst.Name) -> bool:
        """Whether a name is read or bound, and is no word of an attribute, a keyword or a parameter."""
        above = self._tree.parent(name)
        if isinstance(above, cst.Attribute):
            return above.value is name
        if isinstance(above, cst.Arg):
            return above.value is name
        return not isinstance(above, (cst.Param, cst.FunctionDef, cst.ClassDef, cst.NameItem))

    def _joined(self, uses: Iterable[tuple[cst.BaseExpression, cst.BaseExpression | None, int]]) -> Changed:
        found: frozenset[str] = _NONE
        for use, made, depth in uses:
            changed = self._by_use(use, made, depth)
            if changed is None:
                return None
            found |= changed
        return found

    def _by_use(self, use: cst.BaseExpression, made: cst.BaseExpression | None, depth: int) -> Changed:
        """What one use of a dict may change in it; `made` is the expression that made it, None if that is out of sight."""
        node, path = self._item(use)
        above = self._tree.parent(node)
        changed = (frozenset([path[0]]) if isinstance(path[0], str) else None) if path else None
        for key in path:
            made = self._value_in(made, key) if made is not None and isinstance(key, str) else None
        if self._is_target(node):
            return changed
        if isinstance(above, cst.Attribute):
            reads = above.attr.value == "keys" or (above.attr.value in _READING and self._is_flat(made))
            return _NONE if reads or not self._is_called(above) else changed
        if self._only_reads(node, above) or (path and self._is_plain(made)):
            return _NONE
        inside: Changed = None
        if isinstance(above, cst.Arg) and depth < _DEPTH:
            inside = self._by_call(above, made, depth)
        elif isinstance(above, (cst.Assign, cst.AnnAssign)) and depth < _DEPTH:
            inside = self._by_alias(above, made, depth)
        if not path:
            return inside
        return _NONE if inside is not None and not inside else changed

    def _item(self, use: cst.BaseExpression) -> tuple[cst.BaseExpression, list[object]]:
        """The item of a dict that a use of the dict ends in, and the keys that lead there."""
        node, path = use, list[object]()
        above = self._tree.parent(node)
        while True:
            call = self._tree.parent(above) if isinstance(above, cst.Attribute) and above.attr.value == "get" else None
            if isinstance(above, cst.Subscript) and above.value is node:
                index = above.slice[0].slice
                path.append(self._names.constant(index.value) if isinstance(index, cst.Index) else None)
                node = above
            elif isinstance(call, cst.Call) and call.func is above and call.args:
                path.append(self._names.constant(call.args[0].value))
                node = call
            else:
                return node, path
            above = self._tree.parent(node)

    def _is_target(self, node: cst.CSTNode) -> bool:
        above = self._tree.parent(node)
        if isinstance(above, (cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor)):
            return above.target is node
        return isinstance(above, (cst.AssignTarget, cst.Del, cst.AsName))

    def _is_called(self, attribute: cst.Attribute) -> bool:
        above = self._tree.parent(attribute)
        return isinstance(above, cst.Call) and above.func is attribute

    def _only_reads(self, node: cst.CSTNode, above: cst.CSTNode | None) -> bool:
        """Whether what stands around a dict only looks at it, or hands its items on."""
        if isinstance(above, cst.Arg):
            call = self._tree.parent(above)
            name = self._names.call(call) or ""
            if self._names.method(call) in _TELLING:
                return True
            return bool(above.star) or name in _LOOKING or name.startswith(_READERS)
        if isinstance(above, cst.Call):
            return above.func is node
        looks = (cst.StarredDictElement, cst.For, cst.CompFor, cst.Comparison, cst.ComparisonTarget)
        return isinstance(
            above, (*looks, cst.FormattedStringExpression, cst.BinaryOperation, cst.Expr, cst.Index, cst.If)
        )

    def _is_flat(self, made: cst.BaseExpression | None) -> bool:
        """Whether a dict holds nothing that can be changed in its place, so that no loop over it and no copy can do so."""
        values = self._values(made) if made is not None else None
        return values is not None and all(map(self._is_plain, values))

    def _is_plain(self, value: cst.BaseExpression | None) -> bool:
        """Whether a value surely is none that can be changed in its place."""
        numbers_and_texts = (cst.BaseNumber, cst.BaseString, cst.UnaryOperation, cst.Tuple)
        constants = {"None", "True", "False"}
        return isinstance(value, numbers_and_texts) or (isinstance(value, cst.Name) and value.value in constants)

    def _by_call(self, arg: cst.Arg, made: cst.BaseExpression | None, depth: int) -> Changed:
        """What a function of this file may change in the dict it gets."""
        call = self._tree.parent(arg)
        if not isinstance(call, cst.Call):
            return None
        node = self._classes.local(self._names.call(call))
        callee = self._classes.method(node, "__init__") if node is not None else self._hooks.callee(call)
        if callee is None:
            return None
        plain = [*callee.params.posonly_params, *callee.params.params]
        place = call.args.index(arg) + is_bound(self._names, self._classes, callee, call)
        if arg.keyword is not None:
            word = arg.keyword.value
            found = [each for each in (*plain, *callee.params.kwonly_params) if each.name.value == word]
        else:
            found = plain[place : place + 1]
        bound = self._names.bindings.by_scope[callee].get(found[0].name.value, []) if found else []
        return self.of_binding(bound[0], made, depth + 1) if len(bound) == 1 else None

    def _by_alias(self, assign: cst.Assign | cst.AnnAssign, made: cst.BaseExpression | None, depth: int) -> Changed:
        """What may change through the names and attributes that a dict is assigned to as well."""
        targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
        found: frozenset[str] = _NONE
        for target in targets:
            if isinstance(target, cst.Attribute):
                changed = self.of_attribute(target.attr.value, made, depth + 1)
            else:
                bound = self._names.bindings.lookup(target) if isinstance(target, cst.Name) else []
                changed = self.of_binding(bound[0], made, depth + 1) if len(bound) == 1 else None
            if changed is None:
                return None
            found |= changed
        return found
