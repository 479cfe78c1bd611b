from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, LossComputed, Transformed
from lightlint.explore.questions.queries import sure
from lightlint.explore.samples import part_of_batch
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace
from lightlint.models.names.kinds import MIXER
from lightlint.models.tensors.forms import SOFT
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


class LossTargetMismatch(Check):
    asks_passes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Targets of a dtype that the loss refuses."""
        found = [*sure(entry, LossComputed, lambda each: bool(_refused(each)))]
        for event in found:
            yield Fault.at(event, f"`{event.function}` takes {_refused(event)} and raises")
        known = {event.site for event in found}
        for path in entry.paths:
            for event in path.of(LossComputed) if _mixes(path) else ():
                if event.site not in known and _is_chosen_by_less(entry, path, event):
                    known.add(event.site)
                    message = f"`{event.function}` takes {_refused(event)} and raises: a part of what turns mixing on chooses the loss"
                    yield Fault.at(event, message)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """A conversion of the target, where one would do."""
        method = next((method for what, method in _CONVERSIONS.items() if what in fault.message), None)
        given = self.names.argument(node, "target", 1) if isinstance(node, cst.Call) else None
        target = given.value if given is not None and not given.star else None
        if method is None or not isinstance(target, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
            return None
        draft = replace(self.code, target, f"{self.code.text_of(target)}.{method}()")
        return Repair(f"convert the target with `{method}()`", draft, Applicability.SAFE)


_PROBABILITIES = "class probabilities as floats, is given one-hot rows of integers"
_CONVERSIONS = {"float target": "float", "as floats": "float", "as int64": "long"}


_FLOAT = frozenset(
    [
        "BCELoss",
        "BCEWithLogitsLoss",
        "HuberLoss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "huber_loss",
    ]
)


_INDICES_ONLY = frozenset(["LabelSmoothingCrossEntropy", "nll_loss", "NLLLoss"])
_OF_CLASSES = frozenset(["ImageFolder", "CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageNet", "Food101"])
"""Data sets of torchvision whose samples are a picture and the number of its class."""


def _mixes(path: Path) -> bool:
    return any(each.transform.kind == MIXER for each in path.of(Transformed))


def _is_chosen_by_less(entry: Entry, path: Path, event: LossComputed) -> bool:
    """Whether a loss that takes no soft targets gets some, and a test of one of the options that let them be made would have
    chosen another that does."""
    if not _is_soft(event) or not _refused(event):
        return False
    made = {each.site: each.where.conditions for each in path.of(Called)}
    mixers = [each for each in path.of(Transformed) if each.transform.kind == MIXER and each.time < event.time]
    mixing = [test for each in mixers for test in each.where.conditions]
    mixing += [test for each in mixers if each.transform.site for test in made.get(each.transform.site, ())]
    asked = {each for test in mixing if not test.known for each in _parts(test.key)}
    for key, outcome in path.machine.answers.items():
        if not asked.isdisjoint(_parts(key)):
            others = (each for each in entry.paths if each.machine.answers.get(key, outcome) != outcome)
            if any(_takes_soft(each, event.site) for each in others):
                return True
    return False


def _takes_soft(path: Path, site: Site) -> bool:
    """Whether the loss at a place is given soft targets on a path, and takes them."""
    return any(each.site == site and _is_soft(each) and not _refused(each) for each in path.of(LossComputed))


def _is_soft(event: LossComputed) -> bool:
    return isinstance(event.target, Tensor) and event.target.dtype == SOFT


_WORDS = ("and", "or", "not", "==", "!=", "<", "<=", ">", ">=", "is", "in")


def _parts(key: Hashable | None) -> Iterator[Hashable]:
    if isinstance(key, tuple) and key[:1] and key[0] in _WORDS:
        yield from (each for part in key[1:] for each in _parts(part))
    elif key is not None and not (isinstance(key, tuple) and key[:1] == ("constant",)):
        yield key


def _refused(event: LossComputed) -> str:
    """What a loss takes as its target in the place of a dtype that it refuses; "" for one that it takes."""
    function, target = event.function, event.target
    dtype = target.dtype if isinstance(target, Tensor) and not target.escaped else None
    if function == "SoftTargetCrossEntropy":
        indices = dtype in ("int64", "int32") or (dtype is None and _are_classes(target))
        return "class probabilities, one row for each example, is given class indices" if indices else ""
    if dtype is None:
        return ""
    if dtype == SOFT:
        return "class indices, is given class probabilities of a mixer" if function in _INDICES_ONLY else ""
    if function in _FLOAT:
        return "a float target, is given integers" if dtype in ("int64", "int32", "int16", "one-hot") else ""
    if function not in ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"):
        return ""
    if dtype in ("int32", "int16"):
        return f"class indices as int64, is given {dtype}"
    if dtype != "one-hot":
        return ""
    return "class indices, is given one-hot rows" if "nll" in function.lower() else _PROBABILITIES


def _are_classes(target: object) -> bool:
    """Whether a target is as a data set of torchvision gives it, whose transforms make nothing else of it."""
    found = part_of_batch(target) if isinstance(target, Tensor) and not target.escaped else None
    data = found[0].data if found is not None else None
    if found is None or found[1] != 1 or not isinstance(data, Instance) or "collate_fn" in found[0].arguments:
        return False
    return data.name in _OF_CLASSES and "target_transform" not in data.arguments and not data.open_arguments
