from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Backward, BatchDrawn, Differentiated, Forward, ModeSet
from lightlint.explore.questions.queries import goes_nowhere, in_sight
from lightlint.facts.project.mentions import occurs
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import decorate
from lightlint.values.core import Class, is_constant
from lightlint.values.training import Loader

if TYPE_CHECKING:
    from lightlint.engine.frames import Loop
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Cut, Site

_GRADIENTS = re.compile(
    r"grad|backward|attack|adversar|saliency|attribut|perturb|adapt|freeze|register_hook", re.IGNORECASE
)
# words of every training step, which say nothing about an evaluation beside it
_ORDINARY = re.compile(r"backward|zero_grad|optimizer_zero_grad|clip_grad_\w+|[Gg]rad_?[Ss]caler|set_to_none")
# what a potential out of sight gives beside the energy whose gradients they are
_FORCES = re.compile(r"\w*_?(?:forces?|stress(?:es)?)", re.IGNORECASE)

# what raises in a pass without a graph: gradients taken, and hooks of tensors
_ASKING = {"autograd": r"autograd\.grad\(", "register_hook": r"\.register_hook\("}

_MESSAGE = "this module is evaluated with gradients recorded: `eval()` does not turn them off"


class EvalWithoutNoGrad(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Forward passes in eval mode whose graph nothing uses, on any path."""
        if self._is_volatile():
            return
        used = [event for event in entry.of(Forward) if not goes_nowhere(event.graph)]
        useful = {event.site for event in used if not event.training}
        training = {event.site for event in used if event.training}
        alike = {_class_of(each) for each in used if each.training} - {None}  # of one that is given another's weights
        told: dict[Site, Site] = {}  # one place a loop is enough
        faults: list[Fault] = []
        for path in entry.paths:
            evaluated = {m for event in path.of(ModeSet) if not event.training for m in event.module.modules()}
            drawing = {event.where.turns[-1].loop for event in path.of(BatchDrawn) if event.where.turns}
            trained = {event.module for event in path.of(Forward) if event.training and not goes_nowhere(event.graph)}
            for event in path.of(Forward):
                recorded = event.grad and not event.training and not _is_wrapped(event) and _records(path, event)
                loops = {turn.loop for turn in event.where.turns if turn.loop.kind in ("batch", "while")}
                batches = loops & drawing or (event.where.turns and event.site in training)
                of_trained = event.module in trained or _class_of(event) in alike
                batches = batches or (of_trained and _is_gone_through(path, event))
                idle = event.site not in useful and batches and not event.where.phase
                called = event.module in trained or _is_called(event)
                known = in_sight([event.module]) or (not event.module.escaped and called)
                if recorded and idle and event.module in evaluated and known:
                    over = [turn.loop for turn in event.where.turns if turn.loop.kind == "batch"]
                    loop = over[0] if over else event.where.turns[-1].loop  # what goes on inside is the same evaluation
                    site = event.where.in_loop(loop.kind)
                    if self._wants_gradients(event, site) or _is_of_step(path, event) or _goes_into_loss(path, event):
                        continue
                    if told.setdefault(loop.site, site) == site:
                        tier = Tier.NOTE if _is_of_single_samples(loop) else None
                        faults.append(Fault(site, _MESSAGE, tier, also=event.where.places))
        told_at = {each.site for each in faults}
        yield from (each for each in faults if told_at.isdisjoint({*each.also} - {each.site}))  # nor a loop within one

    def repair(self, node: cst.CSTNode, _fault: Fault) -> Repair | None:
        function = self.tree.function(node)
        if function is None or function.asynchronous is not None:
            return None
        trains = any(map(self.loops.is_backward, self.tree.own(function.body, cst.Call)))
        if trains or self.names.written_in("torch", self.tree.module) != "torch":
            return None
        draft = decorate(self.code, function, "@torch.no_grad()")
        return Repair("record no gradients in the function", draft, Applicability.UNSAFE)

    def _is_volatile(self) -> bool:
        """Whether inputs are told to be `volatile` for a torch that may still heed it: then nothing is recorded."""
        told = (each.keyword is not None and each.keyword.value == "volatile" for each in self.tree.all(cst.Arg))
        return not self.facts.torch.always_has("0.4") and any(told)

    def _wants_gradients(self, event: Forward, asked: Site) -> bool:
        """Whether the code around a pass, or around the place in the loop that leads to it, speaks of gradients otherwise than to
        train, or that of its modules asks for them."""
        hidden = not event.module.sees_all()
        if hidden and any(occurs(self.facts.project, word, asking) for word, asking in _ASKING.items()):
            return True
        classes = (each.cls for each in event.module.modules())
        files = {each.file for each in classes if isinstance(each, Class)}
        texts = [self.facts.project.text(pathlib.Path(each)) for each in files]
        if any(re.search(asking, text) for asking in _ASKING.values() for text in texts):
            return True
        words = {
            word
            for site in {event.site, asked}
            for line in self.facts.rehearsed.lines_around(site)
            for word in re.findall(r"\w+", line.partition("#")[0])
        }
        forces = hidden and any(map(_FORCES.fullmatch, words))
        return forces or any(_is_unusual(word) and word != "no_grad" for word in words)


def _class_of(event: Forward) -> ast.ClassDef | None:
    """The class of the program that a module is of; each rehearsal makes it anew."""
    return event.module.cls.node if isinstance(event.module.cls, Class) else None


def _is_of_single_samples(loop: Loop) -> bool:
    """Whether a loader gives one sample at a time: the graph of one costs little beside those of training."""
    loader = loop.over
    if not isinstance(loader, Loader) or loader.open_arguments or "batch_sampler" in loader.arguments:
        return False
    size = loader.arguments.get("batch_size")
    return size is None or is_constant(size, 1)


def _is_gone_through(path: Path, event: Forward) -> bool:
    """Whether a pass is one of many in evaluation mode: a loop around it began when its module was in that mode."""
    modes = [each for each in path.of(ModeSet) if event.module in each.module.modules() and each.time < event.time]
    loop = event.where.turns[-1].loop if event.where.turns else None
    return bool(modes) and not modes[-1].training and loop is not None and loop.made > modes[-1].time


def _is_of_step(path: Path, event: Forward) -> bool:
    """Whether what a pass gives is cut from its graph to train another module beside its own: a generator's samples."""
    own = frozenset(event.parameters)
    passes = path.of(Backward)
    trained = any(own & frozenset(each.parameters) for each in passes)
    cuts = {cut for each in passes if each.time > event.time for cut in _cuts(each)}
    return trained and any(cut.how == "detach" and cut.made >= event.time and cut.parameters & own for cut in cuts)


def _goes_into_loss(path: Path, event: Forward) -> bool:
    """Whether a pass is a part of a step that trains: a backward pass comes later in the same turn of its loop over batches,
    or of another whose loss has what was cut from the graph of this pass in it, the target of another network.
    """
    turn = event.where.turns[-1] if event.where.turns else None
    batches = turn is not None and turn.loop.kind in ("batch", "while")
    own = frozenset(event.parameters)
    return any(
        turn in each.where.turns
        and each.time > event.time
        and (batches or any(cut.made >= event.time and cut.parameters & own for cut in _cuts(each)))
        for each in path.of(Backward)
    )


def _cuts(each: Backward) -> frozenset[Cut]:
    return each.loss.cuts if each.loss is not None else frozenset()


def _records(path: Path, event: Forward) -> bool:
    """Whether a pass is recorded: what it gives has a graph, or is out of sight, and nothing goes backward in its loop."""
    if event.graph:
        return bool(event.parameters)
    loops = {turn.loop for turn in event.where.turns if turn.loop.kind == "batch"}
    passes = (*path.of(Backward), *path.of(Differentiated))
    busy = any(turn.loop in loops for each in passes for turn in each.where.turns)
    return bool(loops) and not busy and any(each.requires_grad for each in event.module.parameters())


def _is_wrapped(event: Forward) -> bool:
    """Whether a pass is within a function whose decorator is out of sight: it may turn gradients off."""
    return any("decorated" in each.function.flags for each in event.where.calls)


def _is_called(event: Forward) -> bool:
    """Whether another function of the program called the one whose loop runs a module: no caller may turn gradients off."""
    kinds = [turn.loop.kind for turn in event.where.turns]
    depth = next((n for n, kind in enumerate(kinds) if kind in ("batch", "while")), len(kinds))
    around = [each for each in event.where.calls if each.turns <= depth]
    return sum(each.function.scope.function is None for each in around) > 1


def _is_of_gradients(word: str) -> bool:
    return _GRADIENTS.search(word) is not None


def _is_unusual(word: str) -> bool:
    """Whether a word is of gradients, and none of those that training has."""
    return _is_of_gradients(word) and not _ORDINARY.fullmatch(word)
