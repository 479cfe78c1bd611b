from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.tree import Loop
from lightlint.facts.data.loading import LOADER
from lightlint.facts.project.mentions import occurs

if TYPE_CHECKING:
    from lightlint.facts.project.project import Project

_DEPTH = 4
_OF_ONE = (  # a loader somewhere in the project: it may be the one that the function is given
    r"(?i)loaders?\((?:[^()]|\([^()]*\))*?(?:batch_?size\s*=|,)\s*1\s*[,)]"
    r"|batch[_-]?size['\"]?\s*[=:]\s*1(?![\w.])"
    r"|batch[_-]?size['\"](?:[^()]|\([^()]*\))*?default\s*=\s*1\b"
)
_WORDS = ("oader(", "atch_size", "atch-size", "atchsize", "ATCH_SIZE", "ATCHSIZE")
_NUMBERS = {"item", "detach", "cpu", "numpy", "tolist", "float", "clone"}
_SUMS = {"builtins.sum", "numpy.sum", "math.fsum"}


def _is_of_one(project: Project) -> bool:
    """Whether some loader of the project gives one example at a time."""
    return any(occurs(project, word, _OF_ONE) for word in _WORDS)


class LossAverageDenominator(Check):
    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if isinstance(node.operator, cst.Divide):
            self._judge(node, node.left, node.right)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if isinstance(node.operator, cst.DivideAssign):
            self._judge(node, node.target, node.value)

    def _judge(self, node: cst.CSTNode, total: cst.BaseExpression, number: cst.BaseExpression) -> None:
        added = self._added(node, self._given_back(total))
        if not added:
            return
        loops = {loops[0] for each in added if (loops := self.tree.loops(each))}
        loop = loops.pop() if len(loops) == 1 else None
        sources = [self._kept(each) for each in self.facts.reaching.sources(number)]
        name = self.code.text_of(self._summed(total))
        if all(map(self._is_weighted, added)) and any(map(self._counts_batches, sources)):
            self.report(
                node, f"`{name}` adds up sums over examples and is divided by the number of batches, not of examples"
            )
        elif all(map(self._is_batch_mean, added)) and any(self._counts_examples(each, loop) for each in sources):
            self.report(
                node, f"`{name}` adds up means over batches and is divided by the number of examples, not of batches"
            )

    def _given_back(self, total: cst.BaseExpression) -> cst.BaseExpression:
        """The total of the helper of this file that adds it up, where a name holds what that gives back."""
        sources = self.facts.reaching.sources(total) if isinstance(total, cst.Name) else [total]
        helper = self.hooks.callee(sources[0]) if len(sources) == 1 and isinstance(sources[0], cst.Call) else None
        returns = self.values.returns(helper) if helper is not None and not helper.decorators else []
        return returns[0] if len(returns) == 1 and isinstance(returns[0], cst.Name) else total

    def _summed(self, total: cst.BaseExpression) -> cst.BaseExpression:
        """The list in `sum(losses)`, else the total itself."""
        sums = isinstance(total, cst.Call) and self.names.call(total) in _SUMS and len(total.args) == 1
        return total.args[0].value if isinstance(total, cst.Call) and sums else total

    def _added(self, node: cst.CSTNode, total: cst.BaseExpression) -> list[cst.BaseExpression]:
        """All that a total which starts at zero adds up, or a list that starts empty gathers; nothing if some is out of sight."""
        summed = self._summed(total)
        if summed is not total:
            return self._gathered(summed)
        if isinstance(total, cst.Attribute):
            return self._added_to_attribute(node, total)
        found = self.names.bindings.lookup(total) if isinstance(total, cst.Name) else []
        bound = [each for each in found if each.site is not total and each.value is not node]
        added = [each for each in bound if each.kind is Kind.AUGMENT and self._is_sum(each.site)]
        starts = [each for each in bound if each not in added]
        own = [each.value for each in starts if self._adds_itself(each)]
        zeros = all(self.names.constant(each.value) == 0 for each in starts if each.value not in own)
        values = [each.value for each in added]
        values += [each.right for each in own if isinstance(each, cst.BinaryOperation)]
        return [each for each in values if each is not None] if zeros else []

    def _adds_itself(self, binding: Binding) -> bool:
        """`total = total + loss.item()`."""
        match binding.value:
            case cst.BinaryOperation(operator=cst.Add(), left=cst.Name(value=left)):
                return left == binding.name and binding.kind is Kind.ASSIGN and not binding.path
        return False

    def _added_to_attribute(self, node: cst.CSTNode, total: cst.Attribute) -> list[cst.BaseExpression]:
        """As for a name, for an attribute that the class itself sets to zero and adds to."""
        room = self.classes.self_class(total.value)
        key = self.names.key(total)
        changes = (
            [each for each in self.tree.within(room, cst.AugAssign) if self.names.key(each.target) == key]
            if room
            else []
        )
        added = [each for each in changes if isinstance(each.operator, cst.AddAssign)]
        starts = self.classes.attribute_sources(room, total.attr.value) if room is not None else []
        values = [value for value, _ in starts if value is not None]
        zeros = bool(values) and all(self.names.constant(each) == 0 for each in values)
        others = [each for each in changes if each not in added and each is not node]
        outside = self.values.parts.is_set_outside(total.attr.value)
        return [each.value for each in added] if zeros and not others and not outside else []

    def _gathered(self, held: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What `append` puts into a list of a function that starts empty and is changed in no other way."""
        found = self.names.bindings.lookup(held) if isinstance(held, cst.Name) else []
        only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN else None
        empty = only is not None and isinstance(only.value, cst.List) and not only.value.elements and not only.path
        if only is None or not empty or not isinstance(held, cst.Name):
            return []
        added: list[cst.BaseExpression] = []
        for call in self.tree.own(only.scope, cst.Call):
            if isinstance(call.func, cst.Attribute) and self.names.key(call.func.value) == held.value:
                if call.func.attr.value != "append" or len(call.args) != 1:
                    return []
                added.append(call.args[0].value)
        return added

    def _counts_batches(self, number: cst.BaseExpression) -> bool:
        """`len(loader)`, of what a loop of the function draws from."""
        if self.names.call(number) != "builtins.len" or not isinstance(number, cst.Call) or not number.args:
            return False
        key = self.names.key(number.args[0].value)
        loops = self.tree.own(self.tree.owner(number), cst.For)
        return bool(key) and any(self.names.key(self.values.iterated(each.iter)) == key for each in loops)

    def _is_weighted(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is the mean loss of a batch times its size: `loss.item() * x.size(0)`."""
        match value:
            case cst.BinaryOperation(operator=cst.Multiply()):
                return any(
                    self._is_batch_mean(mean) and self._is_size(size)
                    for mean, size in ((value.left, value.right), (value.right, value.left))
                )
        return False

    def _is_size(self, value: cst.BaseExpression) -> bool:
        match value:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[only]):
                return self.names.constant(only.value) == 0
            case cst.Call(args=[_]):
                return self.names.call(value) == "builtins.len"
            case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape")), slice=[part]):
                index = part.slice
                return isinstance(index, cst.Index) and self.names.constant(index.value) == 0
        return False

    def _is_sum(self, site: cst.CSTNode) -> bool:
        above = self.tree.parent(site)
        return isinstance(above, cst.AugAssign) and isinstance(above.operator, cst.AddAssign)

    def _counts_examples(self, number: cst.BaseExpression, loop: Loop | None) -> bool:
        """`len(loader.dataset)`, or that of the data set which the loop's loader was made of; or a sum of batch sizes."""
        made = self._loader(loop)
        ones = _is_of_one(self.facts.project) if made is None else not self._has_batches(made)
        if ones:
            return False
        if isinstance(number, cst.Name):
            return loop is not None and self._adds_sizes(number, loop)
        if self.names.call(number) != "builtins.len" or not isinstance(number, cst.Call) or not number.args:
            return False
        counted = number.args[0].value
        if isinstance(counted, cst.Attribute) and counted.attr.value == "dataset":
            return True
        given = self.names.argument(made, "dataset", 0) if made is not None else None
        return given is not None and self._is_one(counted, given.value)

    def _loader(self, loop: Loop | None) -> cst.Call | None:
        """The call that made the loader which a loop draws from."""
        origin = self.values.constructor(self.values.iterated(loop.iter)) if isinstance(loop, cst.For) else None
        return origin.call if origin is not None and origin.name == LOADER else None

    def _has_batches(self, loader: cst.Call) -> bool:
        """Whether a loader surely gives batches of more than one example."""
        size = self.names.argument(loader, "batch_size", 1)
        sampled = self.names.argument(loader, "batch_sampler", 4) is not None
        return sampled or (size is not None and self.names.constant(size.value) not in (1, None))

    def _is_one(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two expressions surely name one data set: in one function or object, or made by one call."""
        one, other = self._kept(one), self._kept(other)
        key = self.names.key(one)
        if key and key == self.names.key(other) and self._see_alike(one, other):
            return True
        made = {origin.call for origin in self.values.origins(one)}
        return len(made) == 1 and None not in made and made == {origin.call for origin in self.values.origins(other)}

    def _kept(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """What `self.data` was set to, where that is one thing."""
        node = self.classes.self_class(value.value) if isinstance(value, cst.Attribute) else None
        values = (
            self.classes.attribute_values(node, value.attr.value) if node and isinstance(value, cst.Attribute) else []
        )
        return values[0] if len(values) == 1 else value

    def _see_alike(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        if isinstance(one, cst.Name) and isinstance(other, cst.Name):
            bound = self.names.bindings.lookup(one)
            return len(bound) == 1 and bound == self.names.bindings.lookup(other)
        parts = [each.value if isinstance(each, cst.Attribute) else each for each in (one, other)]
        nodes = [self.classes.self_class(each) for each in parts]
        return self.tree.owner(one) is self.tree.owner(other) or (nodes[0] is not None and nodes[0] is nodes[1])

    def _adds_sizes(self, number: cst.Name, loop: Loop) -> bool:
        """Whether a count adds up the sizes of a loop's batches."""
        found = self.names.bindings.lookup(number)
        added = [each for each in found if each.kind is Kind.AUGMENT and self._is_sum(each.site)]
        zeros = all(self.names.constant(each.value) == 0 for each in found if each not in added)
        inside = all(self.tree.loops(each.site)[:1] == [loop] for each in added)
        sizes = all(each.value is not None and self._is_batch_size(each.value, loop) for each in added)
        return bool(added) and zeros and inside and sizes

    def _is_batch_size(self, value: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a value is the size of a part of what a loop draws: `y.size(0)`, not of what a mask leaves of it."""
        sources = self.facts.reaching.sources(value)
        if not sources or not all(map(self._is_size, sources)) or not isinstance(loop, cst.For):
            return False
        names = [name for each in sources for name in self.tree.within(each, cst.Name) if not self.names.is_word(name)]
        words = [name for name in names if not self.names.bindings.is_builtin(name)]
        bound = [each for name in words for each in self.facts.reaching.bindings(name)]
        return bool(bound) and all(self._is_drawn(each, loop) for each in bound)

    def _is_drawn(self, binding: Binding, loop: cst.For, depth: int = 0) -> bool:
        """Whether a name is a part of what a loop draws, also moved to a device, or of a tuple taken apart."""
        if self.tree.contains(loop.target, binding.site):
            return True
        value = binding.value
        while (
            isinstance(value, cst.Call)
            and isinstance(value.func, cst.Attribute)
            and value.func.attr.value in {"to", "cuda"}
        ):
            value = value.func.value
        if isinstance(value, cst.Subscript):
            value = value.value
        if not isinstance(value, cst.Name) or binding.kind is not Kind.ASSIGN or depth > _DEPTH:
            return False
        found = self.facts.reaching.bindings(value)
        return bool(found) and all(self._is_drawn(each, loop, depth + 1) for each in found)

    def _is_batch_mean(self, value: cst.BaseExpression | None, depth: int = 0) -> bool:
        """Whether a value surely is the mean loss of one batch: of a criterion as it is, or of a helper that gives it back."""
        value = self._tensor(value)
        sources = self.facts.reaching.sources(value) if value is not None and depth < _DEPTH else []
        return bool(sources) and all(self._is_mean_of(each, depth) for each in sources)

    def _tensor(self, value: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """The loss in `loss.item()`, `float(loss)` and `loss.data`."""
        while True:
            match value:
                case cst.Call(func=cst.Attribute() as func, args=[]) if func.attr.value in _NUMBERS:
                    value = func.value
                case cst.Call(args=[only]) if self.names.call(value) == "builtins.float":
                    value = only.value
                case cst.Attribute(attr=cst.Name(value="data")):
                    value = value.value
                case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
                    value = value.value  # `loss.data[0]`, as torch before 0.4 wrote it
                case _:
                    return value

    def _is_mean_of(self, value: cst.BaseExpression, depth: int) -> bool:
        number = self._tensor(value)
        if number is not value:
            return self._is_batch_mean(number, depth + 1)
        if not isinstance(value, cst.Call):
            return isinstance(value, cst.BinaryOperation) and self.facts.criteria.is_mean(value)
        loss = self.facts.criteria.of(value)
        if loss is not None:
            return self.facts.criteria.reduction(loss) == "mean"
        helpers = self.hooks.callees(value)
        given = [each for helper in helpers for each in self.values.returns(helper)]
        return bool(given) and all(self._is_batch_mean(each, depth + 1) for each in given)
