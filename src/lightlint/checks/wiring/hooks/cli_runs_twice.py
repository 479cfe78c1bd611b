from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.finding import Applicability
from lightlint.fixes.edits import insert_argument
from lightlint.values.core import Class, is_constant
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CLI = "lightning.cli.LightningCLI"
_CHANGING = ("_run_subcommand", "subcommands", "instantiate_classes")


class CliRunsTwice(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Report `cli.trainer.fit(...)` of a CLI that has run a subcommand when it was made."""
        for event in entry.calls.get(".fit", ()) if not self.facts.lightning.may_be_below("1.5") else ():
            cli = event.receiver.attributes.get("#cli") if event.receiver is not None else None
            if isinstance(cli, Instance) and _has_run(cli) and all(each.known for each in event.where.conditions):
                message = "the CLI has run its subcommand when it was made: this fits once more"
                yield replace(Fault.at(event, message), fixed_at=cli.site)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        made = self.node_of(fault.fixed_at) if fault.fixed_at is not None else None
        if not isinstance(made, cst.Call) or self.names.call(made) != _CLI or self.names.argument(made, "run"):
            return None
        return Repair("make it with `run=False`", insert_argument(self.code, made, "run=False"), Applicability.UNSAFE)


def _has_run(cli: Instance) -> bool:
    given = cli.arguments
    changed = isinstance(cli.cls, Class) and any(cli.cls.find(each) is not None for each in _CHANGING)
    told = "run" not in given or is_constant(given["run"], True)
    return told and not (changed or cli.open_arguments or "#2" in given or "subcommand" in given)
