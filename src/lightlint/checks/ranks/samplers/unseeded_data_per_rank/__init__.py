from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.ranks.samplers.unseeded_data_per_rank.handed import differs_by_rank
from lightlint.engine.events import Called, LoaderMade, SplitDrawn
from lightlint.facts.code.bindings import Kind
from lightlint.facts.data.loading import LOADER
from lightlint.facts.lightning.hooks import LOADERS, ONCE_PER_NODE, Owner
from lightlint.facts.objects.classes import DATASET
from lightlint.facts.ranks.seeds import Seeds
from lightlint.facts.ranks.world import TRAINER, Ranks
from lightlint.finding import Tier
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_SPLITS = {"torch.utils.data.random_split": "generator", "sklearn.model_selection.train_test_split": "random_state"}
_DRAWS = {f"torch.{name}" for name in ("randn", "rand", "randint", "normal", "randperm")}
_DRAWS |= {f"numpy.random.{name}" for name in ("rand", "randn", "randint", "random", "normal", "uniform")}
_DRAWS |= {f"numpy.random.{name}" for name in ("choice", "permutation", "standard_normal")}
_ORDERS = {"torch.randperm", "numpy.random.permutation", "numpy.random.shuffle", "random.shuffle"}


class UnseededDataPerRank(Check):
    of_several_processes = True

    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call) or ""
        if name in _SPLITS:
            self._judge_split(call, name)
        elif name == "torch.utils.data.DistributedSampler":
            self._judge_sampler(call)
        elif name in _ORDERS:
            self._judge_order(call, name)

    def visit_Module(self, _node: cst.Module) -> None:
        """Data sets of random numbers, looked for where hooks draw some: most modules do not."""
        calls = self.tree.all(cst.Call)
        if any(map(self._is_draw, calls)):
            for call in calls:
                name = self.names.call(call) or ""
                if self._is_in_hook(call) and (name == LOADER or self.classes.name_is_a(name, DATASET)):
                    self._judge_data(call, name)

    def _judge_split(self, call: cst.Call, name: str) -> None:
        short, seed = name.rpartition(".")[2], _SPLITS[name]
        position = 2 if seed == "generator" else None
        shuffle = self.names.argument(call, "shuffle")
        whole = shuffle is not None and self.names.constant(shuffle.value) is False
        if self.names.has_star(call) or self.names.argument(call, seed, position) is not None or whole:
            return
        tier = self._tier(call)
        if tier is None:
            return
        offset = seed == "generator" and Seeds(self.facts).are_from_rank
        why = "follows a seed that each rank sets differently" if offset else f"without `{seed}` differs on every rank"
        self.report(call, f"`{short}` {why}", tier=tier, repair=self._repair(call, seed))

    def _judge_order(self, call: cst.Call, name: str) -> None:
        """A random order of indices that is cut in parts: each rank puts other samples into them."""
        assign = self.tree.parent(call)
        alone = isinstance(assign, cst.Assign) and len(assign.targets) == 1
        target: cst.CSTNode | None = assign.targets[0].target if alone and isinstance(assign, cst.Assign) else None
        if name.endswith(".shuffle"):
            target = call.args[0].value if call.args else None
        if not isinstance(target, cst.Name) or self.names.argument(call, "generator") is not None:
            return
        cuts = [
            each.slice[0].slice
            for each in self.tree.own(self.tree.owner(call), cst.Subscript)
            if isinstance(each.value, cst.Name) and each.value.value == target.value and len(each.slice) == 1
        ]
        parts = [each for each in cuts if isinstance(each, cst.Slice) and each.step is None]
        heads = [each for each in parts if each.lower is None and each.upper is not None]
        tails = [each for each in parts if each.lower is not None]
        if not heads or not tails or not self.facts.processes.per_rank(call):
            return
        tier = self._tier(call)
        if tier is not None:
            self.report(call, f"`{name.replace('numpy.', 'np.')}` cuts the data differently on every rank", tier=tier)

    def _judge_sampler(self, call: cst.Call) -> None:
        seed = self.names.argument(call, "seed", 4)
        several = self.facts.world.raw is Ranks.MANY or self.facts.world.lightning is not Ranks.ONE
        if seed is None or not several or self._deals_alone(call):
            return
        if Seeds(self.facts).is_from_rank(seed.value) or differs_by_rank(self.facts, seed.value):
            self.report(seed.value, _OWN_SEED)

    def _deals_alone(self, call: cst.Call) -> bool:
        """Whether a sampler draws no order, or shares nothing out."""
        order, parts = self.names.argument(call, "shuffle", 3), self.names.argument(call, "num_replicas", 1)
        unmixed = order is not None and self.names.constant(order.value) is False
        return unmixed or (parts is not None and self.names.constant(parts.value) == 1)

    def _judge_data(self, call: cst.Call, name: str) -> None:
        """A data set of random numbers, made in the hooks that every rank runs."""
        given = call.args[:1] if name == LOADER else call.args
        parts = [part for arg in given for part in self.facts.processes.made_from(arg.value)]
        draws = [each for part in parts for each in self.tree.within(part, cst.Call) if self._is_draw(each)]
        first = min(draws, key=self.tree.order, default=None)
        tier = self._tier(first) if first is not None else None
        if first is not None and tier is not None:
            drawn = (self.names.call(first) or "").replace("numpy.", "np.")
            self.report(first, f"`{drawn}` makes another data set on every rank", tier=tier)

    def _is_draw(self, call: cst.Call) -> bool:
        if self.names.call(call) not in _DRAWS or self.names.argument(call, "generator") is not None:
            return False
        delayed = any(isinstance(above, (cst.Lambda, cst.Decorator)) for above in self.tree.ancestors(call))
        return not delayed and self._is_in_hook(call)

    def _tier(self, call: cst.Call) -> Tier | None:
        """How sure it is that several ranks run an unseeded call; None where they do not, or a seed is set."""
        world, seeds = self.facts.world, Seeds(self.facts)
        if self.guards.guarded(call) or (seeds.are_set and not seeds.are_from_rank):
            return None
        if self.facts.processes.per_rank(call) and world.raw is Ranks.MANY:
            return Tier.WARNING
        if not self._is_in_hook(call) and not self._is_in_script(call):
            return None
        tiers = {Ranks.ONE: None, Ranks.MAYBE: Tier.NOTE, Ranks.MANY: Tier.WARNING}
        return tiers[world.lightning]

    def _is_in_hook(self, call: cst.Call) -> bool:
        """Whether every rank runs a call in `setup`, a loader hook or the constructor of a module or data module."""
        function = self.tree.function(call)
        hooks = {hook.name for hook in self.hooks.around(call)}
        if function is None or hooks & ONCE_PER_NODE:
            return False
        if hooks & {"setup", *LOADERS}:
            return True
        owner = self.hooks.owner(self.tree.class_of(function))
        is_constructor = function.name.value == "__init__" and owner in {Owner.MODULE, Owner.DATA_MODULE}
        return is_constructor and not self.facts.world.is_copied

    def _is_in_script(self, call: cst.Call) -> bool:
        """Whether a call stands beside the Trainer it is for: with DDP every rank runs the script from its top."""
        owner = self.tree.owner(call)
        trainers = [each for each in self.tree.all(cst.Call) if self.names.call(each) == TRAINER]
        return any(self.tree.owner(each) is owner for each in trainers) and not self.facts.world.is_copied

    def _repair(self, call: cst.Call, seed: str) -> Repair | None:
        if seed == "random_state":
            return Repair("split with a fixed seed", insert_argument(self.code, call, "random_state=0"))
        found = self.facts.bindings.lookup_in("torch", self.tree.scope(call))
        if len(found) != 1 or found[0].kind is not Kind.IMPORT or found[0].dotted != "torch":
            return None
        text = "generator=torch.Generator().manual_seed(0)"
        return Repair("split with a seeded generator", insert_argument(self.code, call, text), writes="torch>=1.6")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Samplers that share the data out, and splits, that are seeded with something that each rank has another of."""
        for path in entry.paths:
            for split in path.of(SplitDrawn):
                if _follows_own_seed(path, split):
                    yield Fault.at(split, f"`{split.name}` follows a seed that each rank sets differently")
        several = self.facts.world.raw is Ranks.MANY or self.facts.world.lightning is not Ranks.ONE
        for event in entry.of(LoaderMade) if several else ():
            sampler = event.loader.sampler
            if isinstance(sampler, Instance) and sampler.site is not None and _has_own_seed(sampler):
                yield Fault(sampler.site, _OWN_SEED)


_SETTING = re.compile(r"torch\.manual_seed$|.*\.(?:set_seed|seed_everything)$")


def _follows_own_seed(path: Path, split: SplitDrawn) -> bool:
    """Whether what was seeded last before a split without a seed of its own got another seed on every rank, as far as the
    same data is split on each."""
    seedings = [each for each in path.of(Called) if _SETTING.match(each.path) and each.time < split.time]
    traits = [each.traits for each in split.data] + [each.traits for each in split.where.conditions]
    apart = any("rank" in each for each in traits)
    if split.seeded or apart or not seedings:
        return False
    last, of_torch = seedings[-1], split.name == "random_split"
    if any("rank" in each.traits for each in last.where.conditions):
        return False
    own = last.argument("seed", 0) if of_torch or last.path != "torch.manual_seed" else None
    by_process = is_constant(last.argument("device_specific", 1), True) and last.path.startswith("accelerate.")
    return by_process or (own is not None and "rank" in own.traits)


_OWN_SEED = "this `DistributedSampler` has another seed on every rank"


def _has_own_seed(sampler: Instance) -> bool:
    seed = sampler.argument("seed", 4)
    alone = is_constant(sampler.argument("shuffle", 3), False) or is_constant(sampler.argument("num_replicas", 1), 1)
    return sampler.name == "DistributedSampler" and not alone and seed is not None and "rank" in seed.traits
