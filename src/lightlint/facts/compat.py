"""What the target version means for names that came and went, and which code is there for some versions only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.failures import is_expected
from lightlint.facts.versions import Target, Version
from lightlint.finding import Tier

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_ASKS_VERSION = re.compile(
    r"version|(?:^|_)(?:major|minor)(?:$|_)|greater|less_than|_(?:ge|le|gt|lt)_|\d_\d|^_?has_|hasattr|available|compat"
    r"|legacy|^_?is_(?:new|old|at_least|before|after|since|(?:py)?torch|lightning|pt|pl|v?\d)",  # not `is_sparse`
    re.IGNORECASE,
)
_LIGHTNING_VERSION = re.compile(r"lightning\.(?:fabric\.)?(?:\w+\.)*__version__")


def removal_tier(target: Target, removed: Version) -> Tier | None:
    """How bad it is to use what is gone since `removed`: None where the target still has it, a warning where part of it does."""
    if target.version < removed:
        return None
    return Tier.ERROR if target.surely_at_least(removed) else Tier.WARNING


def _asks_lightning(facts: FileFacts, test: cst.BaseExpression) -> bool:
    """Whether a test asks for the version of Lightning, itself or by a name that holds it or the answer."""
    named = facts.tree.within(test, cst.Name)
    asked = [test, *(source for name in named for source in facts.reaching.sources(name))]
    spelled = [each for part in asked for each in facts.tree.within(part, cst.Attribute, cst.Name)]
    return any(_LIGHTNING_VERSION.fullmatch(facts.names.of(each) or "") for each in spelled)


def is_versioned(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether code runs for some versions only: under a test of a version, or where its failure is expected.

    What a test of Lightning's version keeps from being defined at all, as in a file that ends there, counts as well.
    """
    tree = facts.tree
    above = list(tree.ancestors(node))
    around = [each for each in above if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    if any(_asks_lightning(facts, test) for each in (node, *around) for test, _ in facts.conditions(each)):
        return True
    tests = [test for test, _ in facts.conditions(node)]
    tests += [each.test for each in above if isinstance(each, (cst.If, cst.IfExp))]
    if any(_ASKS_VERSION.search(name.value) for test in tests for name in tree.within(test, cst.Name)):
        return True
    tries = [each for each in above if isinstance(each, cst.Try)]
    if any(tree.contains(each.body, node) and each.handlers for each in tries):
        return True
    return any(isinstance(each, cst.ExceptHandler) for each in above) or is_expected(tree, facts.names, node)
