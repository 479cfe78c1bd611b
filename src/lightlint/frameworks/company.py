"""Callbacks that go with the run of a module out of sight: two epochs of two batches, each hook in its order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from lightlint.engine.frames import Loop
from lightlint.engine.machine import Machine
from lightlint.frameworks.loops import batch_index, driven
from lightlint.frameworks.supply import PHASE, Supply, give_loaders, hook, set_up_data
from lightlint.values.core import Sequence, Unknown, Value
from lightlint.values.training import Instance

_STAGES = {"validate": "validation", "test": "test", "predict": "predict"}


def accompany(machine: Machine, trainer: Instance, module: Value, supply: Supply, node: ast.AST) -> None:
    """A run of a module out of sight: what it does with its data, and with the callbacks of the program."""
    set_up_data(machine, trainer, supply, node)
    if supply.entry == "fit" and supply.data is not None:
        hook(machine, supply.data, "train_dataloader", [], node)
    give_loaders(machine, trainer, module, supply, node)
    given = trainer.arguments.get("callbacks")
    held = given.items if isinstance(given, Sequence) else [given]
    go_along(machine, [each for each in held if isinstance(each, Instance)], [trainer, module], supply.entry, node)


def go_along(machine: Machine, callbacks: list[Instance], given: list[Value], entry: str, node: ast.AST) -> None:
    """Call the hooks of callbacks in their order; `given` is what each gets: the Trainer and the module."""
    if callbacks:
        company = _Company(machine, callbacks, given, node)
        company.fit() if entry == "fit" else company.evaluate(_STAGES[entry], PHASE[entry])


class _Company:
    def __init__(self, machine: Machine, callbacks: list[Instance], given: list[Value], node: ast.AST) -> None:
        self._machine, self._callbacks, self._given, self._node = machine, callbacks, given, node

    def fit(self) -> None:
        """What a `fit` calls."""
        for name in ("setup", "on_fit_start", "on_train_start"):
            self._call(name, Unknown())
        with self._in_phase("train"), self._loop("epoch") as epoch:
            for epoch.turn in (1, 2):
                self._call("on_train_epoch_start")
                with self._loop("batch") as batch:
                    for batch.turn in (1, 2):
                        self._call("on_train_batch_start", Unknown(), batch_index(self._machine))
                        self._call("on_train_batch_end", Unknown(), Unknown(), batch_index(self._machine))
                self.evaluate("validation", "val")
                self._call("on_train_epoch_end")
        for name in ("on_train_end", "on_fit_end"):
            self._call(name)

    def evaluate(self, stage: str, phase: str) -> None:
        """What an evaluation calls."""
        with self._in_phase(phase):
            self._machine.grad.append(False)
            self._call(f"on_{stage}_start")
            self._call(f"on_{stage}_epoch_start")
            with self._loop("batch") as batch:
                for batch.turn in (1, 2):
                    self._call(f"on_{stage}_batch_start", Unknown(), batch_index(self._machine))
                    self._call(f"on_{stage}_batch_end", Unknown(), Unknown(), batch_index(self._machine))
            self._call(f"on_{stage}_epoch_end")
            self._call(f"on_{stage}_end")
            self._machine.grad.pop()

    def _call(self, name: str, *rest: Value) -> None:
        for each in self._callbacks:
            hook(self._machine, each, name, [*self._given, *rest], self._node)

    @contextmanager
    def _in_phase(self, phase: str) -> Iterator[None]:
        self._machine.phases.append(phase)
        try:
            yield
        finally:
            self._machine.phases.pop()

    def _loop(self, kind: str) -> AbstractContextManager[Loop]:
        return driven(self._machine, kind, Unknown(("trainer", kind), plain=True), self._node)
