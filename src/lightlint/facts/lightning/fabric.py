"""What Fabric objects of a file set up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.ranks.world import FABRIC

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

SETUPS = {"setup", "setup_module", "setup_optimizers"}


class Fabrics:
    """The Fabrics of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts

    def is_fabric(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a Fabric, by its constructor or an annotation."""
        origin = self._facts.values.constructor(expression)
        return origin is not None and self._facts.classes.name_is_a(origin.name, FABRIC)
