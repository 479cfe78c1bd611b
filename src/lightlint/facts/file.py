"""All that is known of one file: made once, asked by every check. Each fact is worked out when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lightlint.facts.data.datasets import Datasets
from lightlint.facts.data.workers import Workers
from lightlint.facts.graphs.averages import Averages
from lightlint.facts.graphs.gradients import Gradients
from lightlint.facts.graphs.graphless import Graphless
from lightlint.facts.graphs.rewrapped import Rewrapped
from lightlint.facts.lightning.configured import Configured
from lightlint.facts.lightning.fabric import Fabrics
from lightlint.facts.lightning.monitors import Monitors
from lightlint.facts.lightning.optimization import Optimization
from lightlint.facts.linked import Linked
from lightlint.facts.objects.checkpoints import Checkpoints
from lightlint.facts.objects.kept import KeptValues
from lightlint.facts.objects.prefixes import Prefixes
from lightlint.facts.ranks.data_parallel import DataParallel
from lightlint.facts.ranks.forwards import Forwards
from lightlint.facts.steps.keepers import Keepers
from lightlint.facts.steps.rescues import Rescues
from lightlint.facts.steps.steps import Steps
from lightlint.facts.steps.updates import Updates
from lightlint.facts.tensors.criteria import Criteria
from lightlint.facts.tensors.numbers import Numbers
from lightlint.facts.tensors.results import Results

if TYPE_CHECKING:
    from lightlint.facts.rehearsed import Rehearsed


class FileFacts(Linked):
    """The facts of one source; see `Linked` for what they are made from."""

    def release(self) -> None:
        """Let go of all: facts refer to one another in circles, which only a costly collection would find."""
        for other in self._others.values():
            other.release()
        for flow in self._flows.values():
            flow.release()
        own = [
            self.tree,
            *(fact for fact in (*vars(self).values(), *self._kinds.values()) if self._is_of_this_file(fact)),
        ]
        for fact in own:
            vars(fact).clear()
        vars(self).clear()

    def _is_of_this_file(self, fact: object) -> bool:
        """Whether a fact looks at this file's tree: what is true of other files, too, is kept for them."""
        return any(each is self.tree or each is self for each in getattr(fact, "__dict__", {}).values())

    @cached_property
    def rehearsed(self) -> Rehearsed:
        """What the file's code does when it is rehearsed."""
        from lightlint.facts.rehearsed import rehearsed

        return rehearsed(self.source, self.path, self.project)

    @cached_property
    def kept_values(self) -> KeptValues:
        """What attributes may hold."""
        return KeptValues(self.tree, self.names, self.classes, self.source.text)

    @property
    def data_parallel(self) -> DataParallel:
        """Which models DDP wraps, and which are inside of those."""
        return self.fact(DataParallel)

    @property
    def forwards(self) -> Forwards:
        """Which calls run a forward pass through DDP models, or past them."""
        return self.fact(Forwards)

    @property
    def workers(self) -> Workers:
        """What starts worker processes."""
        return self.fact(Workers)

    @property
    def gradients(self) -> Gradients:
        """Where autograd records, and which values carry a graph."""
        return self.fact(Gradients)

    @property
    def graphless(self) -> Graphless:
        """Which values surely carry no graph."""
        return self.fact(Graphless)

    @property
    def numbers(self) -> Numbers:
        """Which values surely are plain numbers."""
        return self.fact(Numbers)

    @property
    def fabrics(self) -> Fabrics:
        """What Fabric objects set up."""
        return self.fact(Fabrics)

    @property
    def optimization(self) -> Optimization:
        """Who optimizes the LightningModules: Lightning, or their own steps."""
        return self.fact(Optimization)

    @property
    def averages(self) -> Averages:
        """Averages that modules keep of what their layers give."""
        return self.fact(Averages)

    @property
    def keepers(self) -> Keepers:
        """What gathers something in every iteration."""
        return self.fact(Keepers)

    @property
    def configured(self) -> Configured:
        """What `configure_optimizers` returns."""
        return self.fact(Configured)

    @property
    def monitors(self) -> Monitors:
        """Which metrics callbacks and schedulers watch."""
        return self.fact(Monitors)

    @property
    def rescues(self) -> Rescues:
        """Handlers that let training go on without the step that failed."""
        return self.fact(Rescues)

    @property
    def steps(self) -> Steps:
        """What one training step does."""
        return self.fact(Steps)

    @property
    def updates(self) -> Updates:
        """In which order a function clears, computes, clips and uses gradients."""
        return self.fact(Updates)

    @property
    def results(self) -> Results:
        """What calls of this file's functions and modules give back."""
        return self.fact(Results)

    @property
    def rewrapped(self) -> Rewrapped:
        """Which tensors are made of computed values, without their graph."""
        return self.fact(Rewrapped)

    @property
    def criteria(self) -> Criteria:
        """Which calls compute a loss."""
        return self.fact(Criteria)

    @property
    def checkpoints(self) -> Checkpoints:
        """What is done with what `torch.load` gives."""
        return self.fact(Checkpoints)

    @property
    def datasets(self) -> Datasets:
        """Which data sets the workers of DataLoaders draw from."""
        return self.fact(Datasets)

    @property
    def prefixes(self) -> Prefixes:
        """Under which prefix state dicts hold their keys."""
        return self.fact(Prefixes)
