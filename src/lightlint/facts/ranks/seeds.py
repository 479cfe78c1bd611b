"""Whether the draws of a file follow a seed, and whether that seed is another one on every rank."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.ranks.rank_tests import COLLECTIVES

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked


_SEEDS = re.compile(r"seed|set_determinism", re.IGNORECASE)  # the second one is MONAI's
_EXCHANGES = re.compile(r"broadcast|reduce|gather|sync", re.IGNORECASE)
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Modulo)
_DEPTH = 3


class Seeds:
    """The seeds that the calls of one file set."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts

    @cached_property
    def are_set(self) -> bool:
        """Whether anything that sets a seed is called, here or in the files that run this one."""
        called = self._facts.world.called_by_users | self._facts.world.called_by_makers
        elsewhere = any(_SEEDS.search(name.rpartition(".")[2]) or name.endswith("LightningCLI") for name in called)
        return elsewhere or bool(self._calls)

    @cached_property
    def are_from_rank(self) -> bool:
        """Whether every call of this file that seeds the process is given what surely is made with a rank."""
        return bool(self._calls) and all(any(self.is_from_rank(arg.value) for arg in call.args) for call in self._calls)

    def is_from_rank(self, value: cst.BaseExpression) -> bool:
        """Whether a value surely is made with a rank."""
        tree, processes = self._facts.tree, self._facts.processes
        parts = [each for each in processes.made_from(value) if isinstance(each, cst.BaseExpression)]
        return any(
            self._facts.guards.is_rank(each) or self._gives_offset(each, 0)
            for part in parts
            for each in (*tree.within(part, cst.Attribute, cst.Call), *tree.within(part, cst.Name))
        )

    def _gives_offset(self, call: cst.CSTNode, depth: int) -> bool:
        """Whether a function of this file, that lets no rank tell another one, gives a number with its rank put to it."""
        callee = self._facts.hooks.callee(call) if isinstance(call, cst.Call) and depth < _DEPTH else None
        if callee is None or callee.decorators or self._exchanges(callee):
            return False
        returns = self._facts.values.returns(callee)
        return bool(returns) and all(each is not None and self.is_offset(each, depth + 1) for each in returns)

    def is_offset(self, value: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether a value is a sum or a product with a rank in it, whatever is made of that, or what a rank picks from a list."""
        sources = self._facts.reaching.sources(value)
        return all(
            self._is_sum(each, depth) or self._gives_offset(each, depth) or self._is_picked(each) for each in sources
        )

    def _is_picked(self, value: cst.BaseExpression) -> bool:
        """Whether a value is what a list holds for the own rank: `seeds[get_rank()]`."""
        index = value.slice[0].slice if isinstance(value, cst.Subscript) and len(value.slice) == 1 else None
        return isinstance(index, cst.Index) and self._facts.guards.is_rank(index.value)

    def _is_sum(self, value: cst.BaseExpression, depth: int) -> bool:
        if self._facts.names.call(value) == "builtins.int" and isinstance(value, cst.Call) and value.args:
            return self.is_offset(value.args[0].value, depth)
        if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, _ARITHMETIC):
            return False
        sides = (value.left, value.right)
        return any(self._facts.guards.is_rank(each) or self.is_offset(each, depth) for each in sides)

    def _exchanges(self, function: cst.FunctionDef) -> bool:
        """Whether a function may give all ranks the number of one."""
        names = self._facts.names
        calls = self._facts.tree.within(function.body, cst.Call)
        return any(names.call(each) in COLLECTIVES or _EXCHANGES.search(names.method(each)) for each in calls)

    def first_words(self, code: cst.CSTNode) -> list[cst.Subscript]:
        """Where the code of a worker reads the first word of numpy's state, `np.random.get_state()[1][0]`.

        Since 1.9 torch seeds numpy in each worker by an array, which makes this word 2**31 in all of them.
        """
        if not self._facts.torch.may_be_at_least("1.9"):
            return []
        found = [each for each in self._facts.tree.within(code, cst.Subscript) if self._is_first_word(each)]
        return [each for each in found if not self._is_seeded_before(each)]

    def _is_first_word(self, part: cst.Subscript) -> bool:
        state, names = part.value, self._facts.names
        return (
            isinstance(state, cst.Subscript)
            and names.call(state.value) == "numpy.random.get_state"
            and self._index(state) == 1
            and self._index(part) == 0
        )

    def _index(self, part: cst.Subscript) -> object:
        index = part.slice[0].slice if len(part.slice) == 1 else None
        return self._facts.names.constant(index.value) if isinstance(index, cst.Index) else UNKNOWN

    def _is_seeded_before(self, node: cst.CSTNode) -> bool:
        """Whether a call of the same function that comes before a node seeds something, or sets a state; what a function inside
        does that is given nothing belongs to the one around it."""
        tree, names = self._facts.tree, self._facts.names
        above = [each for each in tree.ancestors(node) if isinstance(each, (cst.FunctionDef, cst.Lambda))]
        given = (each for each in above if each.params.params)
        calls = tree.within(next(given, above[-1] if above else tree.module), cst.Call)
        before = (each for each in calls if tree.order(each) < tree.order(node))
        return any(
            (_SEEDS.search(names.method(each)) or names.method(each) == "set_state") and not tree.contains(each, node)
            for each in before
        )

    @cached_property
    def _calls(self) -> list[cst.Call]:
        """The calls of this file that seed the process, not one generator."""
        names = self._facts.names
        calls = [call for call in self._facts.tree.all(cst.Call) if _SEEDS.search(_last(names, call))]
        return [call for call in calls if not self._is_generators(call)]

    def _is_generators(self, call: cst.Call) -> bool:
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        origin = self._facts.values.constructor(receiver) if receiver is not None else None
        return origin is not None and origin.name == "torch.Generator"


def _last(names: Names, call: cst.Call) -> str:
    """What a call calls, by its last name, whatever it is called here."""
    return (names.call(call) or names.method(call)).rpartition(".")[2]
