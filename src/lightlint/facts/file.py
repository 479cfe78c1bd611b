"""All that is known of one file: made once, asked by every check. Each fact is worked out when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lightlint.facts.data.datasets import Datasets
from lightlint.facts.data.loading import Loading
from lightlint.facts.data.workers import Workers
from lightlint.facts.graphs.averages import Averages
from lightlint.facts.graphs.gradients import Gradients
from lightlint.facts.graphs.graphless import Graphless
from lightlint.facts.graphs.loss_dicts import LossDicts
from lightlint.facts.graphs.rewrapped import Rewrapped
from lightlint.facts.lightning.configured import Configured
from lightlint.facts.lightning.fabric import Fabrics
from lightlint.facts.lightning.monitors import Monitors
from lightlint.facts.lightning.optimization import Optimization
from lightlint.facts.linked import Linked
from lightlint.facts.objects.checkpoints import Checkpoints
from lightlint.facts.objects.pickling import Pickling
from lightlint.facts.objects.prefixes import Prefixes
from lightlint.facts.project.summary import summarise
from lightlint.facts.ranks.data_parallel import DataParallel
from lightlint.facts.ranks.forwards import Forwards
from lightlint.facts.ranks.processes import Processes
from lightlint.facts.ranks.world import World
from lightlint.facts.ranks.writes import Writes
from lightlint.facts.steps.keepers import Keepers
from lightlint.facts.steps.rescues import Rescues
from lightlint.facts.steps.steps import Steps
from lightlint.facts.steps.updates import Updates
from lightlint.facts.tensors.criteria import Criteria
from lightlint.facts.tensors.numbers import Numbers
from lightlint.facts.tensors.results import Results
from lightlint.facts.tensors.tensors import Tensors

if TYPE_CHECKING:
    from lightlint.facts.rehearsed import Rehearsed
    from lightlint.facts.versions.versions import Target


class FileFacts(Linked):
    """The facts of one source; see `Linked` for what they are made from."""

    def release(self) -> None:
        """Let go of all: facts refer to one another in circles, which only a costly collection would find."""
        for other in self._others.values():
            other.release()
        for flow in self._flows.values():
            flow.release()
        own = [self.tree, *(fact for fact in vars(self).values() if self._is_of_this_file(fact))]
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
    def processes(self) -> Processes:
        """What runs in the process of each rank."""
        return Processes(self.tree, self.names, self.classes, self.hooks, self.values, self.project, self.path)

    @cached_property
    def data_parallel(self) -> DataParallel:
        """Which models DDP wraps, and which are inside of those."""
        return DataParallel(self)

    @cached_property
    def forwards(self) -> Forwards:
        """Which calls run a forward pass through DDP models, or past them."""
        return Forwards(self, self.data_parallel)

    @cached_property
    def loading(self) -> Loading:
        """Which DataLoaders training draws from."""
        return Loading(self.tree, self.names, self.classes, self.hooks, self.values, self.loops)

    @cached_property
    def writes(self) -> Writes:
        """Which calls write files."""
        return Writes(self.tree, self.names, self.values)

    @cached_property
    def workers(self) -> Workers:
        """What starts worker processes."""
        return Workers(self)

    @cached_property
    def pickling(self) -> Pickling:
        """Which values can be sent to another process."""
        return Pickling(self.tree, self.names, self.classes, self.hooks)

    @cached_property
    def world(self) -> World:
        """How many ranks run this file's code."""
        package = self.project.package_name(self.path)
        from lightlint.facts.versions.versions import Version

        own = summarise(self.source.text, self.module_name, package)
        return World(
            self.project, self.path, own, self._distributed, default_all=self.lightning.surely_at_least(Version("2"))
        )

    @cached_property
    def gradients(self) -> Gradients:
        """Where autograd records, and which values carry a graph."""
        return Gradients(self)

    @cached_property
    def graphless(self) -> Graphless:
        """Which values surely carry no graph."""
        return Graphless(self)

    @cached_property
    def numbers(self) -> Numbers:
        """Which values surely are plain numbers."""
        return Numbers(self)

    @cached_property
    def loss_dicts(self) -> LossDicts:
        """Which dicts hold values that carry a graph."""
        return LossDicts(self)

    @cached_property
    def fabrics(self) -> Fabrics:
        """What Fabric objects set up."""
        return Fabrics(self)

    @cached_property
    def optimization(self) -> Optimization:
        """Who optimizes the LightningModules: Lightning, or their own steps."""
        return Optimization(self)

    @cached_property
    def averages(self) -> Averages:
        """Averages that modules keep of what their layers give."""
        return Averages(self)

    @cached_property
    def keepers(self) -> Keepers:
        """What gathers something in every iteration."""
        return Keepers(self)

    @cached_property
    def configured(self) -> Configured:
        """What `configure_optimizers` returns."""
        return Configured(self)

    @cached_property
    def monitors(self) -> Monitors:
        """Which metrics callbacks and schedulers watch."""
        return Monitors(self)

    @cached_property
    def rescues(self) -> Rescues:
        """Handlers that let training go on without the step that failed."""
        return Rescues(self)

    @cached_property
    def steps(self) -> Steps:
        """What one training step does."""
        return Steps(self)

    @cached_property
    def updates(self) -> Updates:
        """In which order a function clears, computes, clips and uses gradients."""
        return Updates(self)

    @cached_property
    def results(self) -> Results:
        """What calls of this file's functions and modules give back."""
        return Results(self)

    @cached_property
    def rewrapped(self) -> Rewrapped:
        """Which tensors are made of computed values, without their graph."""
        return Rewrapped(self)

    @cached_property
    def criteria(self) -> Criteria:
        """Which calls compute a loss."""
        return Criteria(self)

    @cached_property
    def tensors(self) -> Tensors:
        """Which values are tensors made on the CPU."""
        return Tensors(self.tree, self.names, self.classes, self.hooks, self.values, self.reaching)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """What is done with what `torch.load` gives."""
        return Checkpoints(self)

    @cached_property
    def datasets(self) -> Datasets:
        """Which data sets the workers of DataLoaders draw from."""
        return Datasets(self)

    @cached_property
    def prefixes(self) -> Prefixes:
        """Under which prefix state dicts hold their keys."""
        return Prefixes(self)

    @cached_property
    def torch(self) -> Target:
        """The version of torch the file is written for."""
        return self.target("torch")

    @cached_property
    def lightning(self) -> Target:
        """The version of Lightning the file is written for."""
        return self.target("lightning")

    def target(self, package: str) -> Target:
        """The version of a package the file is written for."""
        from lightlint.facts.versions.requirements import script_install
        from lightlint.facts.versions.targets import target_of

        pip_lines = (*(command for _, command in self.source.pip_lines), *script_install(self.source.text))
        if package not in self._target:
            self.project.asked.add(("target", package, str(self.path.parent), *pip_lines))
        return target_of(package, self.path, self.project.root, setting=self._target.get(package), pip_lines=pip_lines)
