"""What Lightning gives a Trainer: attributes and methods."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Collective
from lightlint.engine.machine import Machine
from lightlint.frameworks.company import accompany
from lightlint.frameworks.fit import evaluate, fit
from lightlint.frameworks.lightning import counter
from lightlint.frameworks.supply import supplied
from lightlint.models.ranks.groups import FIRST_NAMES, RANK_NAMES, brought, rank_value, world_size
from lightlint.models.registry import attributes, methods
from lightlint.values.core import (
    NONE,
    TRUE,
    Constant,
    Library,
    NotYet,
    Unknown,
    Value,
    is_constant,
    text_of,
)
from lightlint.values.training import Instance, Module, Tensor

COLLECTIVE_METHODS = frozenset(
    ["barrier", "broadcast", "reduce", "all_reduce", "all_gather", "reduce_boolean_decision"]
)
_OF_FIT = re.compile("spawn|fork|notebook")  # strategies whose processes live as long as `fit`


@attributes("trainer")
def trainer_attribute(machine: Machine, trainer: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a Trainer; None for a method."""
    assert isinstance(trainer, Instance)
    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    if name == "train_dataloader" and "#data" not in trainer.attributes and machine.hooks[-1] == "configure_optimizers":
        return NONE if trainer.escaped else NotYet(name, trainer)
    if name == "max_epochs":
        return trainer.arguments.get("max_epochs") or Unknown(("trainer", "max_epochs"), plain=True)
    if name == "estimated_stepping_batches":
        trainer.attributes["#data"] = TRUE  # it makes the loaders
        factors = ((("trainer", "batches"), 1), (("trainer", "max_epochs"), 1))
        return Unknown(("product", factors), plain=True, factors=factors)
    if name == "num_training_batches":
        return Unknown(("trainer", "batches"), frozenset({"batches"}), plain=True)
    if name == "world_size":
        return world_size()
    if name == "log_dir":
        machine.emit(Collective(machine.where(node), "trainer.log_dir", [], _is_alone(machine, trainer)))
        return Unknown(("log_dir",), plain=True)
    if name == "strategy":
        strategy = machine.instance(Library("lightning.strategies.Strategy"), "strategy", node)
        strategy.attributes["#trainer"] = trainer
        return strategy
    if name in ("fit_loop", "limit_train_batches", "_checkpoint_connector"):
        machine.escape(trainer)  # what it has done may be set back
        return Unknown(("trainer", name), hint=name)
    if name in ("lightning_module", "model"):
        return trainer.attributes.get("#module") or Unknown()
    if name == "is_last_batch":
        turns = tuple(loop.turn for loop in machine.loops)
        return Unknown(("last batch", turns), frozenset({"periodic", "last"}), plain=True)
    if name in ("current_epoch", "global_step"):
        return counter(machine, name)
    if name == "sanity_checking":
        return Constant(False)
    if name in ("training", "validating", "testing", "predicting"):
        return Constant((machine.phases[-1] or "train")[:4] == name[:4])
    if name in (
        "datamodule",
        "logger",
        "loggers",
        "callback_metrics",
        "checkpoint_callback",
        "train_dataloader",
        "val_dataloaders",
        "callbacks",
        "logged_metrics",
    ):
        return Unknown(("trainer", name), hint=name)
    return None


@methods("trainer")
def trainer_method(machine: Machine, trainer: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a Trainer."""
    assert isinstance(trainer, Instance)
    if name in ("fit", "validate", "test", "predict"):
        module, supply = given.get(0, "model"), supplied(name, given)
        if module is None and name != "fit":
            module = trainer.attributes.get("#module")
        if isinstance(module, Module):
            (fit if name == "fit" else evaluate)(machine, module, trainer, supply, node)
        else:
            machine.escape(module)
            accompany(machine, trainer, module or Unknown(), supply, node)
        trainer.attributes["#ran"] = TRUE
        return NONE
    if name == "save_checkpoint" or name in COLLECTIVE_METHODS:
        alone = _is_alone(machine, trainer)
        machine.emit(Collective(machine.where(node), f"trainer.{name}", given.values(), alone))
        return NONE
    return Unknown()


def _is_alone(machine: Machine, trainer: Value) -> bool:
    """Whether a Trainer surely runs in one process now: it has one device, or the processes of its `fit` have ended."""
    given = trainer.arguments if isinstance(trainer, Instance) else {}
    one = is_constant(given.get("devices"), 1) and is_constant(given.get("num_nodes", Constant(1)), 1)
    strategy = text_of(given.get("strategy")) or ""
    ended = isinstance(trainer, Instance) and "#ran" in trainer.attributes and bool(_OF_FIT.search(strategy))
    return one or ended or machine.group_ended


@methods("strategy")
def strategy_method(machine: Machine, strategy: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a strategy."""
    if name in COLLECTIVE_METHODS:
        trainer = strategy.attributes.get("#trainer", NONE) if isinstance(strategy, Instance) else NONE
        alone = _is_alone(machine, trainer)
        machine.emit(Collective(machine.where(node), f"strategy.{name}", given.values(), alone))
        first = given.positional[0] if given.positional else NONE
        return first if name == "barrier" or isinstance(first, Tensor) else brought(machine, node)
    return Unknown()
