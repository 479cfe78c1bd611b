"""Which DataLoaders training draws from, and who brings their batches to the ranks."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.data.loops import Loops
from lightlint.facts.graphs.switches import is_switched_around
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.classes import DATASET, ITERABLE_DATASET, Classes
from lightlint.facts.ranks.world import TRAINER
from lightlint.facts.values.values import Values

LOADER = "torch.utils.data.DataLoader"
_MAP_STYLE = ("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")


class Driver(StrEnum):
    """Who draws the batches of a training loader."""

    LOOP = "loop"
    LIGHTNING = "Lightning"


class Loading:
    """The training loaders of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, values: Values, loops: Loops) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self._values = values
        self._loops = loops

    @cached_property
    def training(self) -> dict[cst.Call, Driver]:
        """The `DataLoader(...)` calls whose batches surely train, with who draws them.

        A loop counts if it runs a backward pass and every loader that it can iterate is in sight as it was made:
        one that a library wrapped is none of these. Where a loop has a sampled loader and one without a sampler to
        choose from, the second is for a single process and left out.
        """
        found: dict[cst.Call, Driver] = {}
        for call in self._tree.all(cst.Call):
            if self._names.call(call) == LOADER and any(h.name == "train_dataloader" for h in self._hooks.around(call)):
                found[call] = Driver.LIGHTNING
            elif self._is_fit(call):
                given = self._names.argument(call, "train_dataloaders", 1)
                found.update(dict.fromkeys(self._made(given.value if given else None), Driver.LIGHTNING))
        for loop in self._tree.all(cst.For):
            if self._trains(loop):
                made = self._made(self._values.iterated(loop.iter))
                sampled = [each for each in made if self.is_sampled(each)]
                found.update(dict.fromkeys(sampled or made, Driver.LOOP))
        return found

    def _is_fit(self, call: cst.Call) -> bool:
        if self._names.method(call) != "fit" or not isinstance(call.func, cst.Attribute):
            return False
        origin = self._values.constructor(call.func.value)
        return origin is not None and origin.name == TRAINER

    def _trains(self, loop: cst.For) -> bool:
        calls = self._tree.own(loop.body, cst.Call)
        recorded = (each for each in calls if not is_switched_around(self._tree, self._names, each))
        helpers = map(self._hooks.callee, recorded)  # one that is called without gradients only evaluates here
        bodies = [loop.body, *(helper.body for helper in helpers if helper is not None)]
        return any(self._loops.is_backward_in(body) for body in bodies)

    def _made(self, expression: cst.CSTNode | None) -> list[cst.Call]:
        origins = self._values.origins(expression)
        calls = [each.call for each in origins if each.name == LOADER and each.call is not None]
        return calls if len(calls) == len(origins) else []

    def dataset(self, loader: cst.Call) -> cst.BaseExpression | None:
        """The data set that a loader is given."""
        arg = self._names.argument(loader, "dataset", 0)
        return arg.value if arg is not None else None

    def is_sampled(self, loader: cst.Call) -> bool:
        """Whether a loader has, or may have, a sampler or batch sampler of its own, or draws no batches itself."""
        if self._names.has_star(loader):
            return True
        for keyword, position in (("sampler", 3), ("batch_sampler", 4)):
            arg = self._names.argument(loader, keyword, position)
            if arg is not None and self._names.constant(arg.value) is not None:
                return True
        size = self._names.argument(loader, "batch_size", 1)
        return size is not None and self._names.constant(size.value) is None

    def is_map_style(self, loader: cst.Call) -> bool:
        """Whether a loader's data set surely is no IterableDataset: by its class, or because it is shuffled."""
        shuffle = self._names.argument(loader, "shuffle", 2)
        if shuffle is not None and self._names.constant(shuffle.value) is True:
            return True  # DataLoader raises ValueError for an IterableDataset with shuffle=True
        return self._is_map(self.dataset(loader))

    def _is_map(self, expression: cst.CSTNode | None) -> bool:
        if isinstance(expression, (cst.List, cst.ListComp)):
            return True
        origins = self._values.origins(expression)
        return bool(origins) and all(self._is_map_class(each.name) for each in origins)

    def _is_map_class(self, name: str) -> bool:
        if name.startswith(_MAP_STYLE):
            return True
        known = self._classes.name_is_a(name, DATASET) and not self._classes.name_is_a(name, ITERABLE_DATASET)
        return known and not name.endswith(".ChainDataset")
