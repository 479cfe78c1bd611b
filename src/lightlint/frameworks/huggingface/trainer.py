"""`transformers.Trainer` and TRL's trainers as programs: what they ask of the program's functions, and when."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import TypeGuard

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call
from lightlint.engine.events import Event
from lightlint.engine.events.huggingface import MetricsComputed, Rewarded, SettingsParsed, TrainerMade, TrainerRan
from lightlint.engine.execution import LeaveLoop, NextTurn, Raised
from lightlint.engine.machine import Machine
from lightlint.frameworks.huggingface.adapters import wrap
from lightlint.frameworks.huggingface.columns import drops, narrows
from lightlint.frameworks.huggingface.values import is_own, model_of, setting, settings_of
from lightlint.frameworks.loops import driven
from lightlint.models import objects
from lightlint.models.data.workers import SAMPLE, apart, work
from lightlint.models.names.huggingface import ARGUMENTS, PARSER, ROWS, TRAINER, TRANSFORM, WATCHER
from lightlint.models.python.settings import settings_at
from lightlint.models.ranks.groups import FIRST_NAMES, RANK_NAMES, rank_value, world_size
from lightlint.models.registry import attributes, making, methods
from lightlint.models.tensors.derivation import on_gpu
from lightlint.models.training.modules import set_mode
from lightlint.values.core import (
    IDS,
    LEFT_OUT,
    NO_TRAITS,
    NONE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Partial,
    Sequence,
    Unknown,
    Value,
    is_constant,
)
from lightlint.values.training import Instance, Loader, Module, Tensor

TOKENS = "token ids"
"""The role of token ids as a collator puts them into a batch, whatever shape they are given."""


@making(TRAINER)
def made(machine: Machine, trainer: Instance, given: Arguments, node: ast.AST) -> None:
    """A Trainer keeps what it is given; an adapter's configuration is put around its model at once."""
    model, config = model_of(trainer), trainer.arguments.get("peft_config")
    if isinstance(model, Module) and config is not None and not is_constant(config, None):
        trainer.arguments["model"] = wrap(machine, model, config, node)
    machine.emit(TrainerMade(machine.where(node), trainer, settings_of(trainer)))


@making(ARGUMENTS)
def made_settings(_: Machine, settings: Instance, given: Arguments, __: ast.AST) -> None:
    """TrainingArguments: the first positional one is the folder."""
    first = settings.arguments.pop("#0", None)
    if first is not None:
        settings.arguments["output_dir"] = first
    settings.open_arguments = not given.exact or len(given.positional) > 1


@attributes(ARGUMENTS)
def setting_of(machine: Machine, settings: Value, name: str, _: ast.AST) -> Value | None:
    """One of the TrainingArguments."""
    assert isinstance(settings, Instance)
    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    if name == "world_size":
        return world_size()
    if name.startswith(("get_", "to_", "set_", "main_process_first")) or name == "parse":
        return None
    return setting(settings, name) or Unknown(("of", settings.key, name), hint=name, plain=True)


@methods(ARGUMENTS)
def settings_method(machine: Machine, settings: Value, name: str, _: Arguments, node: ast.AST) -> Value:
    """A method of TrainingArguments."""
    if name == "main_process_first":
        return machine.instance(Library("transformers.main_process_first"), "context", node)
    if name.startswith("set_"):
        machine.escape(settings)
        return settings
    return Unknown()


@methods(PARSER)
def parse(machine: Machine, parser: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """What `HfArgumentParser` makes of a command line, or of a file beside the program: an object of each class, of which only
    the class is known, or what the file says."""
    assert isinstance(parser, Instance)
    if not name.startswith("parse_"):
        return Unknown()
    types = parser.argument("dataclass_types", 0)
    classes = types.items if isinstance(types, Sequence) else [types]
    told: Value | None = given.get(0, name.removeprefix("parse_"))
    if name in ("parse_json_file", "parse_yaml_file"):
        told = settings_at(machine, told)
    settings = told.items if isinstance(told, Mapping) and not told.more else {}
    lineages = [one for each in classes if isinstance(each, Class) for one in each.lineage()]
    fields = frozenset(name for each in lineages if isinstance(each, Class) for name, *_ in each.fields)
    found: list[Value] = [_filled(machine, each, settings, fields, node) for each in classes if each is not None]
    if name == "parse_args_into_dataclasses":
        for each in found:
            if isinstance(each, Instance) and each.kind == ARGUMENTS and isinstance(each.cls, Class):
                machine.emit(SettingsParsed(machine.where(node), each))
    return Sequence(found, "tuple", more=name != "parse_args_into_dataclasses")


def _filled(
    machine: Machine, cls: Value, settings: dict[Hashable, Value], of_others: frozenset[str], node: ast.AST
) -> Value:
    if isinstance(cls, Library) and settings:
        told = {name: each for name, each in settings.items() if isinstance(name, str) and name not in of_others}
        return call(machine, cls, Arguments([], told), node)
    if isinstance(cls, Class):
        made = objects.make(machine, cls, Arguments(double_star=Unknown()), node)
        for name, held in settings.items() if isinstance(made, Instance) else ():
            if isinstance(name, str) and name in made.attributes:
                made.attributes[name] = held
        for name, held in made.attributes.items() if isinstance(made, Instance) else ():
            if is_constant(held, None):  # unless the command line says otherwise
                made.attributes[name] = Unknown(("field", cls.name, name), hint=name)
        return made
    if isinstance(cls, Library):
        return objects.make_library(machine, cls, Arguments(double_star=Unknown()), node)
    return Unknown()


@attributes(TRAINER)
def attribute(machine: Machine, trainer: Value, name: str, _: ast.AST) -> Value | None:
    """An attribute of a Trainer; None for a method."""
    assert isinstance(trainer, Instance)
    if name in RANK_NAMES or name in FIRST_NAMES:
        return rank_value(machine, name)
    if name in ("model", "model_wrapped"):
        return model_of(trainer) or Unknown(hint=name)
    if name == "args":
        return settings_of(trainer) or Unknown(hint=name)
    if name in ("train_dataset", "eval_dataset", "data_collator", "compute_metrics"):
        return trainer.arguments.get(name) or Unknown(hint=name)
    if name in ("tokenizer", "processing_class"):
        return trainer.arguments.get("processing_class") or trainer.arguments.get("tokenizer") or Unknown(hint=name)
    if name in ("state", "control", "accelerator", "optimizer", "lr_scheduler", "label_smoother", "callback_handler"):
        return Unknown(("of", trainer.key, name), hint=name)
    return None


@methods(TRAINER)
def method(machine: Machine, trainer: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a Trainer."""
    assert isinstance(trainer, Instance)
    if name in ("train", "evaluate", "predict"):
        _run(machine, trainer, name, node)
        return Unknown(hint="metrics")
    if name == "compute_loss":
        loss = machine.tensor(node)
        loss.role, loss.leaf, loss.guessed, loss.mixed = "loss", False, True, True
        outputs = given.keywords.get("return_outputs")
        return Sequence([loss, Unknown()], "tuple") if outputs is not None else loss
    if name == "add_callback":
        trainer.attributes["#callbacks"] = Sequence([*_added(trainer), *given.positional])
        return NONE
    return (
        NONE if name in ("save_model", "save_state", "log", "push_to_hub", "save_metrics", "log_metrics") else Unknown()
    )


def _added(trainer: Instance) -> list[Value]:
    held = trainer.attributes.get("#callbacks")
    return held.items if isinstance(held, Sequence) else []


def callbacks_of(trainer: Instance) -> list[Value]:
    """The callbacks that a Trainer was given."""
    given = trainer.arguments.get("callbacks")
    return [*(given.items if isinstance(given, Sequence) else []), *_added(trainer)]


def _run(machine: Machine, trainer: Instance, name: str, node: ast.AST) -> None:
    model, settings = model_of(trainer), settings_of(trainer)
    row = _row(machine, trainer, node) if name == "train" else None
    machine.emit(TrainerRan(machine.where(node), trainer, settings, model, name, row))
    if isinstance(model, Module):
        set_mode(machine, model, name == "train", node)
    with _phase(machine, "train" if name == "train" else "val", node):
        _compute_loss(machine, trainer, model, row, node)
        if name == "train":
            for each in callbacks_of(trainer):
                _tell(machine, each, trainer, node)
    _compute_metrics(machine, trainer, settings, node)
    if name == "train":
        _reward(machine, trainer, settings, row, node)


def _is_talk(prompt: Value | None) -> TypeGuard[Sequence]:
    """Whether a prompt is a list of messages: TRL hands over what a model answers as such a list, too."""
    messages = prompt.items if isinstance(prompt, Sequence) and prompt.kind == "list" else []
    return bool(messages) and all(
        isinstance(each, Mapping) and {"role", "content"} <= each.items.keys() for each in messages
    )


def _answer() -> Sequence:
    """What a model answers to messages: one message."""
    answer = Sequence([Mapping({"role": Constant("assistant"), "content": Unknown(hint="content", plain=True)})])
    answer.talk = True
    return answer


_OF_REWARDS = ("prompts", "completions", "completion_ids")


def _reward(machine: Machine, trainer: Instance, settings: Instance | None, row: Mapping | None, node: ast.AST) -> None:
    """What the program's reward functions give; all else that they do is left aside."""
    prompt = row.items.get("prompt") if row is not None else None
    given = trainer.argument("reward_funcs", 1)
    for place, function in enumerate(given.items if isinstance(given, Sequence) else [given]):
        if function is None or not is_own(function):
            continue
        told: dict[str, Value] = {name: Sequence([Unknown((name, trainer.key))], more=True) for name in _OF_REWARDS}
        if _is_talk(prompt):
            told["prompts"], told["completions"] = Sequence([prompt], more=True), Sequence([_answer()], more=True)
        result: Value = Unknown()
        inside: list[Event] = []
        with (
            apart(machine, set(), inside),
            suppress(Exception),
        ):  # it may raise what the program does, or spend the budget
            result = call(machine, function, Arguments([], told, double_star=Unknown()), node)
        machine.emit(Rewarded(machine.where(node), trainer, settings, place, result, machine.returned_at, inside))


def _row(machine: Machine, trainer: Instance, node: ast.AST) -> Mapping | None:
    """A row of what it trains on, as a collator of the program makes it, else as the data have it."""
    data, collator = trainer.argument("train_dataset", 3), trainer.argument("data_collator", 2)
    if isinstance(data, Instance) and "#row" in data.attributes and not is_own(collator):
        row = data.attributes["#row"]
        return row if isinstance(row, Mapping) else None
    loader = machine.new(Loader, Library("torch.utils.data.DataLoader"), node)
    loader.data, loader.arguments = data, {"dataset": data or Unknown()}
    if collator is not None and is_own(collator):
        loader.arguments["collate_fn"] = collator
    if narrows(trainer):
        loader.narrows = partial(_left_of, trainer)
        transform = data.attributes.get(TRANSFORM) if isinstance(data, Instance) else None
        if transform is not None and is_own(transform):
            _try(machine, transform, [_left_of(trainer, Unknown())], node)
    work(machine, loader, node)
    made = loader.attributes.get(SAMPLE)
    return made if isinstance(made, Mapping) else None


def _left_of(trainer: Instance, sample: Value) -> Value:
    """What a Trainer leaves of a row: of a plain dict the columns that its model takes."""
    data = trainer.argument("train_dataset", 3)
    whole = Mapping(more=True) if isinstance(data, Instance) and data.kind == ROWS else sample
    if not isinstance(whole, Mapping) or whole.encoding is not None:
        return sample
    found = copy(whole)
    found.items = {key: each for key, each in whole.items.items() if isinstance(key, str) and not drops(trainer, key)}
    found.batch_of, found.row_of = trainer, True
    return found


@contextmanager
def _phase(machine: Machine, phase: str, node: ast.AST) -> Iterator[None]:
    machine.phases.append(phase)
    machine.grad.append(phase == "train")
    try:
        with driven(machine, "batch", None, node) as loop:
            loop.turn = 1
            yield
    finally:
        machine.grad.pop()
        machine.phases.pop()


def _own(holder: Value, name: str) -> Function | None:
    found = holder.cls.find(name) if isinstance(holder, Instance) and isinstance(holder.cls, Class) else None
    return found if isinstance(found, Function) else None


def _try(machine: Machine, function: Value, args: list[Value], node: ast.AST) -> Value:
    try:
        return call(machine, function, Arguments(args), node)
    except (Raised, LeaveLoop, NextTurn):
        return Unknown()


def _compute_loss(machine: Machine, trainer: Instance, model: Value | None, row: Mapping | None, node: ast.AST) -> None:
    own = _own(trainer, "compute_loss")
    if own is not None:
        collated = row is not None and is_own(trainer.argument("data_collator", 2))
        given = _on_gpu(machine, row, node) if collated and row is not None else _of_rows(machine, row, node)
        given.batch_of = trainer
        _try(machine, Bound(trainer, own), [model or Unknown(), given], node)


def _of_rows(machine: Machine, row: Mapping | None, node: ast.AST) -> Mapping:
    """What a library's collator makes of rows: their ids as the tokenizer filled them up."""
    given = batch(machine, node)
    ids = row.items.get("input_ids") if row is not None else None
    ids = ids.items[0] if isinstance(ids, Sequence) and ids.items else ids
    if ids is not None:
        given.items["input_ids"].encoding = ids.encoding
    return given


def _on_gpu(machine: Machine, row: Mapping, node: ast.AST) -> Mapping:
    """What a collator of the program gives, as the Trainer hands it on."""
    given = Mapping(more=row.more)
    given.encoding = row.encoding
    for key, each in row.items.items():
        given.items[key] = on_gpu(machine, each, node) if isinstance(each, Tensor) else each
    return given


def batch(machine: Machine, node: ast.AST) -> Mapping:
    """What a collator makes of rows of tokens."""
    ids, labels = machine.tensor(node), machine.tensor(node)
    for each in (ids, labels):
        each.leaf, each.device = False, "cuda"
    ids.role, labels.role = TOKENS, "label"
    return Mapping({"input_ids": ids, "labels": labels}, more=True)


_EVENTS = (
    "on_train_begin",
    "on_epoch_begin",
    "on_step_begin",
    "on_step_end",
    "on_evaluate",
    "on_epoch_end",
    "on_train_end",
)


def _told(trainer: Instance) -> dict[str, Value]:
    """What a Trainer tells its callbacks by name, as far as it is in sight."""
    given = {name: trainer.arguments.get(name) for name in ("processing_class", "tokenizer")}
    found = {"model": model_of(trainer), **given}
    return {name: each for name, each in found.items() if isinstance(each, Instance)}


def _takes(function: Function, name: str) -> bool:
    parameters = function.node.args
    named = (*parameters.args, *parameters.kwonlyargs)
    return parameters.kwarg is not None or any(each.arg == name for each in named)


def _tell(machine: Machine, callback: Value, trainer: Instance, node: ast.AST) -> None:
    for name in _EVENTS:
        own = _own(callback, name)
        if own is not None:
            settings = settings_of(trainer) or Unknown(hint="args")
            state, control = Unknown(("state", trainer.key), hint="state"), Unknown(hint="control")
            named = {key: each for key, each in _told(trainer).items() if _takes(own, key)}
            given = Arguments([settings, state, control], named, double_star=Unknown(), assumed=True)
            try:
                call(machine, Bound(callback, own), given, node)
            except (Raised, LeaveLoop, NextTurn):
                continue


def _compute_metrics(machine: Machine, trainer: Instance, settings: Instance | None, node: ast.AST) -> None:
    function = trainer.arguments.get("compute_metrics")
    if not isinstance(function, (Function, Bound, Partial, Instance)):
        return
    given = machine.instance(Library("transformers.EvalPrediction"), "namespace", node)
    predictions = Unknown(("predictions", trainer.key), IDS, hint="predictions")
    filled = LEFT_OUT if _fills_labels(trainer) else NO_TRAITS
    labels = Unknown(("label ids", trainer.key), IDS | filled, hint="label_ids")
    given.attributes.update({"predictions": predictions, "label_ids": labels})
    given.attributes["#parts"] = Sequence([predictions, labels], "tuple")
    result = _try(machine, function, [given], node)
    machine.emit(MetricsComputed(machine.where(node), trainer, settings, result, machine.returned_at))


def _fills_labels(trainer: Instance) -> bool:
    """Whether a collator of the library fills up the labels with -100."""
    collator = trainer.argument("data_collator", 2)
    if not isinstance(collator, Instance) or collator.open_arguments or "label_pad_token_id" in collator.arguments:
        return False
    return collator.name in ("DataCollatorForSeq2Seq", "DataCollatorForTokenClassification")


@methods(WATCHER)
def callback_method(_: Machine, __: Value, ___: str, ____: Arguments, _____: ast.AST) -> Value:
    """What a callback inherits does nothing."""
    return NONE
