"""Which bindings reach a use, against one search of the control-flow graph for each."""

from __future__ import annotations

import libcst as cst
import pytest
from file_facts import facts_of, real_programs

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.file import FileFacts

HARD = """
def train(model, loss, loader):
    for x in loader:
        try:
            loss = model(x)
            loss = check(loss)
        except ValueError:
            use(loss)
            loss = None
            continue
        finally:
            loss, loss = log(loss), loss
            for loss in parts(loss):
                while loss:
                    loss = step(loss)
        with open(loss) as loss:
            loss += loss if loss else (loss := 1)
        match loss:
            case [loss, *_]:
                break
            case {"loss": loss} if loss:
                return loss
        del loss
    return loss
"""


def by_searching(facts: FileFacts, name: cst.Name, found: list[Binding]) -> list[Binding]:
    flow = facts.flow(facts.tree.owner(name))
    sites = [flow.start if each.kind is Kind.PARAMETER else each.site for each in found]
    return [
        each
        for each, site in zip(found, sites, strict=True)
        if flow.reaches(site, [name], avoiding=[o for o in sites if o is not site and o is not flow.start])
    ]


@pytest.mark.parametrize("text", [HARD, *(path.read_text(encoding="utf-8") for path in real_programs()[:4])])
def test_one_pass_finds_what_a_search_for_each_binding_finds(text: str):
    facts, compared = facts_of(text), 0
    for name in facts.tree.all(cst.Name):
        found, owner = facts.names.bindings.lookup(name), facts.tree.owner(name)
        if len(found) < 2 or any(each.scope is not owner for each in found) or not facts.flow(owner).point_of(name):
            continue
        assert facts.reaching.bindings(name) == (by_searching(facts, name, found) or found), name.value
        compared += 1
    assert compared > 5
