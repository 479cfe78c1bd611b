from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.steps.objectives.bootstrap_past_the_end.asked import is_come_to
from lightlint.checks.steps.objectives.bootstrap_past_the_end.horizons import are_cut_short
from lightlint.explore.questions.bootstrap import bootstrapped, is_answer, is_number
from lightlint.values.training import Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_ENDS = re.compile(r"dones?\b|done_|terminat|terminals?\b|\bis_(?:end|last|final)|\bover\b|finish")
"""Names of ends behind which nothing comes: one that was cut short (`truncated`) goes on."""
_TASK = re.compile(r"""['"](?:\w+/)?([A-Za-z]\w*)-v\d+['"]""")
_ENDLESS = re.compile("Pendulum|HalfCheetah|Swimmer|Reacher|Pusher|Fetch|Hand|Adroit")
"""Tasks of Gymnasium, MuJoCo's and the robots' among them, whose episodes are cut short and never end by themselves."""
_MAKES = re.compile(r"\bgym\w*\.(?:vector\.)?make")
_LONGEST = 20  # of a name or a key; a longer text is no key


class BootstrapPastTheEnd(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets that go on with the value of a next state that an episode may not have, in a program that knows of ends."""
        ends = [each for each in self.tree.all(cst.Name, cst.SimpleString) if _is_end(each.value)]
        if not ends:
            return
        faults = [*self._past_ends(entry, ends)]
        if faults and not self._is_endless(entry):
            yield from faults

    def _past_ends(self, entry: Entry, ends: list[cst.Name | cst.SimpleString]) -> Iterator[Fault]:
        for event, target, factors in bootstrapped(entry):
            answers = [each for each in factors if is_answer(each)]
            others = [each for each in factors if each not in answers]
            if target.site is None or not all(map(is_number, others)):
                continue
            if not any(self._is_of_one(each, target.site) for each in ends):
                continue
            known = {each.site for each in (target, *answers) if isinstance(each, Tensor)}
            known |= {cut.site for each in answers for cut in each.cuts}
            places = [each for each in known if each is not None]
            mine = (path for path in entry.paths if event in path.of(type(event)))
            asked = any(map(self._is_asked_for, places))
            if not asked and not any(is_come_to(path, each, target, _is_end) for path in mine for each in places):
                message = "the target goes on behind the end of an episode: the value of the next state counts after the last step, too"
                yield Fault(target.site, message, None, (event.site,))

    def _is_asked_for(self, site: Site) -> bool:
        """Whether a place is only come to where a test of the end came out one way: `if not done: last = critic(state)`.

        The test of a `while` is older than the step which the loop takes.
        """
        node = self.node_of(site)
        for test, _ in self.facts.conditions(node) if node is not None else ():
            around = next(
                (each for each in self.tree.ancestors(test) if not isinstance(each, cst.BaseExpression)), None
            )
            if not isinstance(around, cst.While) and any(
                _is_end(word.value) for word in self.tree.within(test, cst.Name)
            ):
                return True
        return False

    def _is_endless(self, entry: Entry) -> bool:
        """Whether all tasks that the program names, or has classes of its own for, are without an end."""
        texts = [self.facts.source.text, *map(self.facts.project.text, self.facts.rehearsed.imported)]
        named = [name for text in texts for name in _TASK.findall(text)]
        if named:
            return all(map(_ENDLESS.match, named)) and are_cut_short(entry) is not False
        return not any(map(_MAKES.search, texts)) and are_cut_short(entry) is True

    def _is_of_one(self, word: cst.CSTNode, site: Site) -> bool:
        """Whether a word may be of the program that a place is of: not in another class, where neither names the other's class."""
        span = self.facts.rehearsed.span(site)
        if span is None:
            return True
        around = (each for each in self.tree.all(cst.ClassDef) if self._is_around(each, span))
        own, other = next(around, None), self.tree.enclosing_class(word)
        return own is None or other is None or own is other or self._names(own, other) or self._names(other, own)

    def _is_around(self, node: cst.ClassDef, span: tuple[int, int]) -> bool:
        start, end = self.facts.positions.span(node)
        return start <= span[0] and span[1] <= end

    def _names(self, one: cst.ClassDef, other: cst.ClassDef) -> bool:
        return any(each.value == other.name.value for each in self.tree.within(one, cst.Name))


def _is_end(word: str) -> bool:
    return len(word) < _LONGEST and _ENDS.search(word) is not None
