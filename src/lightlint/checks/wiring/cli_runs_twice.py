from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument

_CLI = "lightning.cli.LightningCLI"


class CliRunsTwice(Check):
    def visit_Call(self, call: cst.Call) -> None:
        """Report `cli.trainer.fit(...)` of a CLI that has run a subcommand when it was made."""
        func = call.func
        trainer = func.value if isinstance(func, cst.Attribute) and func.attr.value == "fit" else None
        if not isinstance(trainer, cst.Attribute) or trainer.attr.value != "trainer":
            return
        origin = self.values.constructor(trainer.value)
        made = origin.call if origin is not None else None
        if origin is None or made is None or not self._is_plain(origin.name) or self.facts.conditions(call):
            return
        if self.names.has_star(made) or len([each for each in made.args if each.keyword is None]) > 2:
            return
        given = self.names.argument(made, "run")
        if self.names.argument(made, "subcommand") or self.facts.lightning.may_be_below("1.5"):
            return
        if given is None or self.names.constant(given.value) is True:
            name = self.code.text_of(trainer.value)
            draft = insert_argument(self.code, made, "run=False") if given is None else None
            self.report(
                call,
                f"`{name}` has run its subcommand when it was made: this fits once more",
                repair=Repair("make it with `run=False`", draft, Applicability.UNSAFE) if draft else None,
            )

    def _is_plain(self, name: str) -> bool:
        """Whether a class is the CLI, or one of this file's that runs subcommands as it does."""
        node = self.classes.local(name)
        if node is None:
            return name == _CLI
        own = {"__init__", "_run_subcommand", "subcommands", "instantiate_classes"}
        return self.classes.is_a(node, _CLI) and not own & set(self.classes.methods(node))
