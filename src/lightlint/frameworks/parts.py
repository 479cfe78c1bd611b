"""What stands beside module and Trainer: data modules, and the LightningCLI that makes all of them."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Misused
from lightlint.engine.machine import Machine
from lightlint.engine.misuse import is_caught
from lightlint.frameworks.fit import fit
from lightlint.frameworks.lightning import is_being_made, not_attached, save_hyperparameters
from lightlint.frameworks.supply import Supply
from lightlint.models import objects
from lightlint.models.registry import attributes, function, methods
from lightlint.values.core import NONE, Class, Library, Mapping, Unknown, Value, is_constant
from lightlint.values.training import Instance, Module

_OF_DATA_MODULES = re.compile(
    r"_.*|on_.*|\w+_dataloader|hparams\w*|\w*hyperparameters|has_\w+|\w+_transforms|\w+_batch\w*|from_datasets|load_from_checkpoint"
    r"|setup|teardown|prepare_data\w*|state_dict|load_state_dict|trainer|name|dims|size|CHECKPOINT_\w+|allow_\w+"
)


@attributes("data module")
def data_module_attribute(machine: Machine, data: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a LightningDataModule that the program has not set; None for a method."""
    assert isinstance(data, Instance)
    if name == "hparams":
        data.attributes[name] = objects.namespace(machine, node, {})
        return data.attributes[name]
    if name == "trainer":
        if is_being_made(machine, data):
            return not_attached(machine, data, name, node)
        trainer = machine.instance(Library("lightning.Trainer"), "trainer", node)
        trainer.open_arguments = True
        data.attributes[name] = trainer
        return trainer
    known = not isinstance(data.cls, Class) or not data.cls.sees_all() or data.escaped or data.cls.find("__getattr__")
    if not known and not _OF_DATA_MODULES.fullmatch(name) and not is_caught(machine, "AttributeError"):
        machine.emit(Misused(machine.where(node), data, name))
        return Unknown(("of", data.key, name), hint=name)
    return None


@methods("data module")
def data_module_method(machine: Machine, data: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method that LightningDataModule gives."""
    if name == "save_hyperparameters" and isinstance(data, Instance):
        save_hyperparameters(machine, data, given, node)
    return NONE


@function("lightning.cli.LightningCLI")
def _cli(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """A LightningCLI runs its subcommand as soon as it is made; with which callbacks is told where its defaults say so."""
    made = objects.make_library(machine, Library("lightning.cli.LightningCLI"), given, node)
    cls, defaults = given.get(0, "model_class"), given.keywords.get("trainer_defaults")
    runs = given.get(-1, "run") is None or is_constant(given.keywords.get("run"), True)
    if isinstance(cls, Class) and isinstance(defaults, Mapping) and "callbacks" in defaults.items and runs:
        trainer = machine.models.attribute(machine, made, "trainer", node)
        module = machine.models.make(machine, cls, Arguments(assumed=True), node)
        if isinstance(trainer, Instance) and isinstance(module, Module) and "subclass_mode_model" not in given.keywords:
            trainer.arguments["callbacks"] = defaults.items["callbacks"]
            fit(machine, module, trainer, Supply("fit", assumed=True), node)
    return made


@attributes("cli")
def cli_attribute(machine: Machine, cli: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a LightningCLI."""
    assert isinstance(cli, Instance)
    if name == "trainer":
        made = machine.instance(Library("lightning.Trainer"), "trainer", node)
        made.open_arguments = True
        made.attributes["#cli"] = cli
        cli.attributes[name] = made
        return made
    found = Unknown(("of", cli.key, name), hint=name)
    cli.attributes[name] = found
    return found
