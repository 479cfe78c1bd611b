from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.ranks.samplers.missing_set_epoch.samplers import SAMPLERS, Samplers
from lightlint.checks.ranks.samplers.missing_set_epoch.streams import Stream, training_streams
from lightlint.engine.choices import asked_for_constants, plain_key
from lightlint.engine.events import Backward, EpochSet, Forward, Looped
from lightlint.explore.questions.queries import by_choice, identity_of, speaks_of, sure
from lightlint.facts.code.tree import Loop
from lightlint.facts.data.loading import LOADER, Driver
from lightlint.fixes.edits import insert_before
from lightlint.values.core import Class, Constant, Sequence, is_constant
from lightlint.values.training import Instance, Loader, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_DEPTH = 3


class MissingSetEpoch(Check):
    of_several_processes = True

    @property
    def _samplers(self) -> Samplers:
        return Samplers(self.facts)

    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) not in SAMPLERS or not self._samplers.shuffles(call):
            return
        if self._is_told_in_rehearsal(call) or self._evaluates_in_rehearsal(call):
            return
        for loader, driver in self.facts.loading.training.items():
            if driver is Driver.LOOP and self._samplers.of(loader) is call:
                if self._samplers.is_told(call, loader) or self._is_refused(loader):
                    return
                places = (each for each in self._epochs(loader) if not self._is_seeded_anew(each[0], call))
                place = next(places, None)
                if place is not None:
                    self.report(
                        call,
                        "`set_epoch` is never called: every epoch draws the same order",
                        repair=self._repair(*place) if self._samplers.is_always_given(loader) else None,
                    )
                return
        if self._samplers.is_told(call, None):
            return
        if any(self._draws(stream, call) for stream in training_streams(self.facts)):
            self.report(call, "`set_epoch` is never called: every epoch draws the same order")

    def _is_refused(self, loader: cst.Call) -> bool:
        """Whether the constructor of a loader with a sampler raises: it is asked to shuffle, too."""
        shuffle = self.names.argument(loader, "shuffle", 2)
        return shuffle is not None and self.names.constant(shuffle.value) is True

    def _is_told_in_rehearsal(self, call: cst.Call) -> bool:
        """Whether some path tells the epoch to the sampler that a call makes, as a helper of another file does."""
        rehearsed, span = self.facts.rehearsed, self.facts.positions.span(call)
        told = (event.sampler for entry in rehearsed.entries for event in entry.of(EpochSet))
        shuffling = (each.site for each in told if not is_constant(each.argument("shuffle", 3), False))
        return any(site is not None and rehearsed.span(site) == span for site in shuffling)

    def _evaluates_in_rehearsal(self, call: cst.Call) -> bool:
        """Whether the batches drawn with the sampler of a call train nothing, though another loader's in the same loop may."""
        rehearsed, span = self.facts.rehearsed, self.facts.positions.span(call)
        entries = rehearsed.entries
        ended = (path for entry in entries for path in entry.paths if path.finished and not path.raised)
        drawn = {site for path in ended for event in path.of(Looped) if (site := _sampled(event.loop.over))}
        training = {site for entry in entries for loader in _trained_from(entry) if (site := _sampled(loader))}
        return any(rehearsed.span(site) == span for site in drawn - training)

    def _draws(self, stream: Stream, sampler: cst.Call) -> bool:
        """Whether a stream goes over one loader again and again that has the sampler."""
        loader = self.values.constructor(stream.drawn)
        made = loader.call if loader is not None and loader.name == LOADER else None
        if made is None or self._samplers.of(made) is not sampler or self.tree.contains(stream.loop, made):
            return False
        if self._is_refused(made):
            return False
        single = isinstance(stream.loop, cst.For) and self._is_single(stream.loop)
        return not single and not self._is_seeded_anew(stream.loop, sampler)

    def _is_seeded_anew(self, loop: Loop, sampler: cst.Call) -> bool:
        """Whether a loop makes the sampler in each turn, with a seed that may be another one each time."""
        seed = self.names.argument(sampler, "seed", 4)
        if seed is None and not self.names.has_star(sampler):
            return False
        fixed = seed is not None and isinstance(self.names.constant(seed.value), int)
        return not fixed and self.facts.steps.comes_in(loop, sampler)

    def _epochs(self, loader: cst.Call) -> Iterator[tuple[Loop, cst.BaseExpression | None]]:
        """The epoch loops in which a loader is drawn to its end, each with what it is called there if that is known."""
        training_first = sorted(self.tree.all(cst.For), key=lambda loop: not self.loops.is_backward_in(loop.body))
        for loop in training_first:
            drawn = self.values.iterated(loop.iter)
            if any(origin.call is loader for origin in self.values.origins(drawn)):
                yield from self._around(loop, drawn if isinstance(drawn, cst.BaseExpression) else None, loader)

    def _around(
        self, node: cst.CSTNode, drawn: cst.BaseExpression | None, loader: cst.Call, depth: int = 0
    ) -> Iterator[tuple[Loop, cst.BaseExpression | None]]:
        """The loops that repeat a node, in its function or around the calls of that."""
        loops = self.tree.loops(node)
        if loops:
            if not self.tree.contains(loops[0], loader) and self._comes_again(loops[0], node):
                yield loops[0], drawn
            return
        function = self.tree.function(node)
        if function is None or depth > _DEPTH:
            return
        for call in self.facts.steps.calls_of.get(function, ()):
            yield from self._around(call, self._called(function, call, drawn), loader, depth + 1)

    def _comes_again(self, loop: Loop, node: cst.CSTNode) -> bool:
        """Whether a loop repeats a node: a `while` may be left behind its first pass, or try it anew after a failure."""
        if isinstance(loop, cst.For):
            return not self._is_single(loop)
        tried = any(self.tree.contains(each, node) for each in self.tree.own(loop.body, cst.Try))
        flow = self.facts.flow(self.tree.owner(loop))
        return not tried and flow.reaches_in_later_iteration(loop, node, [node])

    def _is_single(self, loop: cst.For) -> bool:
        """Whether a loop counts to a number that is written down as 1, as that of a program which trains for one epoch."""
        counted = loop.iter.args if isinstance(loop.iter, cst.Call) else ()
        ranged = self.names.call(loop.iter) == "builtins.range" and len(counted) == 1
        return ranged and self.names.constant(counted[0].value) == 1

    def _called(
        self, function: cst.FunctionDef, call: cst.Call, drawn: cst.BaseExpression | None
    ) -> cst.BaseExpression | None:
        """What a loader that a function draws from is called where the function is called."""
        if isinstance(drawn, cst.Attribute):
            same = isinstance(call.func, cst.Attribute) and self.classes.is_self(call.func.value)
            return drawn if same and self.classes.is_self(drawn.value) else None
        return self.values.given(function, call, drawn.value) if isinstance(drawn, cst.Name) else None

    def _repair(self, loop: Loop, drawn: cst.BaseExpression | None) -> Repair | None:
        if not isinstance(loop, cst.For):
            return None
        key = self.names.key(drawn)
        first = loop.body.body[0] if loop.body.body else None
        counted = self.names.call(loop.iter) == "builtins.range"
        if not key or not counted or not isinstance(loop.target, cst.Name) or not isinstance(first, cst.BaseStatement):
            return None
        key = self.code.text_of(drawn) if isinstance(drawn, cst.Subscript) else key
        draft = insert_before(self.code, first, f"{key}.sampler.set_epoch({loop.target.value})")
        return Repair("tell the sampler the epoch", draft)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Epochs over one loader with a shuffling DistributedSampler whose `set_epoch` no path calls."""
        if any(True for _ in entry.of(EpochSet)):
            return
        trained = {identity_of(_sampler(each)) for each in _trained_from(entry)}

        def is_faulty(event: Looped) -> bool:
            told = self._is_told_by_wrapper(event.loop.over)
            return not told and _draws_alike(event) and identity_of(_sampler(event.loop.over)) in trained

        faulty = dict.fromkeys((*sure(entry, Looped, is_faulty), *by_choice(entry, Looped, is_faulty)))
        for event in (each for each in faulty if not _is_of_another_task(entry, each)):
            sampler = _sampler(event.loop.over)
            if sampler is not None and sampler.site is not None:
                around = (event.site, *(turn.loop.site for turn in event.where.turns))
                message = "`set_epoch` is never called: every epoch draws the same order"
                yield Fault(sampler.site, message, also=around)

    def _is_told_by_wrapper(self, loader: object) -> bool:
        """Whether Fabric or an Accelerator set up a loader: they tell its sampler the epoch, an Accelerator since 0.24."""
        wrapper = loader.attributes.get("#managed") if isinstance(loader, Loader) else None
        older = isinstance(wrapper, Instance) and wrapper.kind == "accelerator"
        return wrapper is not None and not (older and self.facts.target("accelerate").surely_below("0.24"))


def _trained_from(entry: Entry) -> set[object]:
    """What a model is trained on the batches of, wherever the loop over it stands: a generator's is not around the step."""
    graphs = [event.graph for event in entry.of(Backward)]
    passes = (event for event in entry.of(Forward) if any(event.graph & each for each in graphs))
    around: set[object] = {turn.loop.over for event in entry.of(Backward) for turn in event.where.turns}
    return around | {tensor.batch_of for event in passes for tensor in tensors_in(Sequence(event.inputs))}


def _is_of_another_task(entry: Entry, event: Looped) -> bool:
    """Whether another file makes the sampler for one of the tasks that an argument names, as of `args.task == "forecast"`: which
    one it is for which the loop runs, that file's callers know.
    """
    sampler = _sampler(event.loop.over)
    made = [
        each for calls in entry.calls.values() for each in calls if sampler is not None and each.site == sampler.site
    ]
    tests = (test for each in made if each.site[0] != event.site[0] for test in each.where.conditions if not test.known)
    asked = (asked_for_constants(plain_key(test.key)[0]) for test in tests)
    return any(
        each is not None and speaks_of(each.unknown, _GIVEN) and all(_is_text(one) for one in each.constants)
        for each in asked
    )


_GIVEN = re.compile("parameter")


def _is_text(key: object) -> bool:
    return isinstance(key, tuple) and key[:2] == ("constant", "str")


def _sampler(loader: object) -> Instance | None:
    sampler = loader.sampler if isinstance(loader, Loader) else None
    return sampler if isinstance(sampler, Instance) else None


def _sampled(loader: object) -> Site | None:
    """Where the sampler of a loader was made."""
    sampler = _sampler(loader)
    return sampler.site if sampler is not None else None


def _draws_alike(event: Looped) -> bool:
    """Whether a loop goes over a loader again, whose DistributedSampler shuffles and is older than the loop around."""
    loader, turns = event.loop.over, event.where.turns
    sampler = _sampler(loader)
    if sampler is None or isinstance(sampler.cls, Class) or not turns or event.where.phase:
        return False
    if isinstance(loader, Loader) and is_constant(loader.arguments.get("shuffle"), True):
        return False  # its constructor raises
    shuffle = sampler.argument("shuffle", 3)
    shuffles = shuffle is None or (isinstance(shuffle, Constant) and shuffle.value is True)
    in_sight = not (sampler.escaped or sampler.open_arguments or (loader is not None and loader.escaped))
    older = sampler.made < turns[-1].loop.made
    return sampler.name == "DistributedSampler" and shuffles and in_sight and older and turns[-1].number > 1
