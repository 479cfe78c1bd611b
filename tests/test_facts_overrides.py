"""What Lightning passes to hooks, which hook a name was meant to be, and who calls a method."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from file_facts import facts_in, facts_of
from hypothesis import given
from hypothesis import strategies as st

from lightlint.facts.lightning.hook_calls import passed
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.lightning.overrides import class_api, is_stub, taken
from lightlint.facts.lightning.spelling import close_hook, distance
from lightlint.facts.project.mentions import is_called, is_called_with_arguments, is_mentioned, is_set
from lightlint.facts.releases.api import lightning_api
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.facts.versions.versions import Target, Version
from lightlint.finding import Tier

WORD = st.text(alphabet="abc_", max_size=6)


@given(WORD, WORD)
def test_distance_is_symmetric_and_zero_for_the_same_word_only(left: str, right: str) -> None:
    assert distance(left, right) == distance(right, left)
    assert (distance(left, right) == 0) == (left == right)


@pytest.mark.parametrize(
    ("name", "steps"), [("step", 0), ("stpe", 1), ("setp", 1), ("steps", 1), ("stop", 1), ("tip", 2)]
)
def test_distance_counts_letters(name: str, steps: int) -> None:
    assert distance(name, "step") == steps


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("on_training_epoch_end", "on_train_epoch_end"),
        ("val_step", "validation_step"),
        ("valid_dataloader", "val_dataloader"),
        ("configure_optimizer", "configure_optimizers"),
        ("on_train_bacth_end", "on_train_batch_end"),
        ("tng_dataloader", "train_dataloader"),
        ("shared_step", None),
        ("common_step", None),
        ("fast_step", None),
        ("on_load", None),
        ("encode", None),
    ],
)
def test_hook_that_a_name_means(name: str, hook: str | None) -> None:
    assert close_hook(name, frozenset(lightning_api().lightning_module.signatures)) == hook


@pytest.mark.parametrize("owner", list(Owner))
def test_no_hook_means_another(owner: Owner) -> None:
    hooks = frozenset(class_api(owner).signatures)
    assert {name: close_hook(name, hooks) for name in hooks} == {name: name for name in hooks}


@pytest.mark.parametrize(
    ("version", "hook", "signature", "missing", "refused"),
    [
        ("2.6", "setup", "self", [], ["stage"]),
        ("2.6", "setup", "self, stage", [], []),
        ("2.6", "setup", "self, phase", ["phase"], ["stage"]),
        ("2.6", "setup", "self, **kwargs", [], []),
        ("1.9", "setup", "self, phase", [], []),
        ("2.6", "optimizer_step", "self, epoch, batch_idx, optimizer, optimizer_closure", [], []),
        ("2.6", "optimizer_step", "self, epoch, batch_idx, optimizer", [], ["optimizer_closure"]),
        ("2.6", "optimizer_step", "self, *args, **kwargs", [], []),
        ("1.9", "on_before_optimizer_step", "self, optimizer, optimizer_idx", [], []),
        ("2.6", "on_before_optimizer_step", "self, optimizer, optimizer_idx", ["optimizer_idx"], []),
        ("2.6", "configure_gradient_clipping", "self, optimizer", [], ["gradient_clip_algorithm", "gradient_clip_val"]),
        ("2.6", "on_validation_batch_end", "self, out, batch, batch_idx", [], []),
        ("2.6", "on_validation_batch_end", "self, out, batch, batch_idx, dataloader_idx=0", [], []),
        ("2.6", "training_step", "self", [], []),
        ("2.6", "training_step", "self, batch, batch_idx, extra", ["extra"], []),
        ("2.6", "validation_step", "self, batch, batch_idx, loader", ["loader"], []),
        ("2.6", "validation_step", "self, batch, batch_idx, dataloader_idx", [], []),
        ("2.6", "backward", "self, loss", [], []),
        ("2.6", "backward", "self, loss, optimizer, optimizer_idx", ["optimizer", "optimizer_idx"], []),
    ],
)
def test_what_a_release_passes(version: str, hook: str, signature: str, missing: list[str], refused: list[str]) -> None:
    facts = facts_of(f"def {hook}({signature}): pass")
    takes = taken(facts, facts.tree.all(cst.FunctionDef)[0])
    call = passed(Owner.MODULE, hook, Version(version))
    assert takes is not None
    assert call is not None
    assert (call.missing(takes), call.refused(takes)) == (missing, refused)


@pytest.mark.parametrize("version", ["1.0", "1.5", "1.9", "2.0", "2.6"])
@pytest.mark.parametrize("owner", list(Owner))
def test_every_release_calls_its_own_hooks(owner: Owner, version: str) -> None:
    """A method written with Lightning's own parameters takes what Lightning passes."""
    for hook in class_api(owner).signatures:
        parameters = class_api(owner).signature(hook, Version(version))
        call = passed(owner, hook, Version(version))
        if parameters is None or call is None:
            continue
        listed = [
            "self",
            *(each.kind + each.name + ("" if each.required or each.kind else "=None") for each in parameters),
        ]
        facts = facts_of(f"def {hook}({', '.join(listed)}): pass")
        takes = taken(facts, facts.tree.all(cst.FunctionDef)[0])
        assert takes is not None
        assert (call.missing(takes), call.refused(takes)) == ([], []), hook


@pytest.mark.parametrize(
    ("body", "stub"),
    [
        ("pass", True),
        ("...", True),
        ('"""Say."""', True),
        ("raise NotImplementedError", True),
        ("return 1", False),
        ("f()", False),
    ],
)
def test_stub_says_nothing(body: str, stub: bool) -> None:
    assert is_stub(facts_of(f"def f(self):\n    {body}\n").tree.all(cst.FunctionDef)[0]) is stub


def test_decorator_that_is_not_known_may_change_parameters() -> None:
    facts = facts_of("@timed\ndef f(self, x): pass\n@torch.no_grad()\ndef g(self, x): pass\n")
    first, second = facts.tree.all(cst.FunctionDef)
    assert taken(facts, first) is None
    assert taken(facts, second) is not None


@pytest.mark.parametrize(
    ("text", "called", "given", "mentioned", "assigned"),
    [
        ("model.step()", True, False, True, False),
        ("model.step(x)", True, True, True, False),
        ("model.step(prefix=x)", True, False, True, False),
        ("super().step(x)", False, False, False, False),
        ("def step(self): pass", False, False, False, False),
        ("getattr(model, 'step')", True, False, True, False),
        ("setattr(model, 'step', x)", True, False, True, True),
        ("model.step = 3", False, False, True, True),
        ("model.step == 3", False, False, True, False),
        ("model.steps(3)", False, False, False, False),
    ],
)
def test_uses_of_a_name(text: str, called: bool, given: bool, mentioned: bool, assigned: bool, tmp_path: Path) -> None:
    for files in ({"a.py": text}, {"a.py": "x = 1", "b.py": text}):
        facts = facts_in(tmp_path, files, "a.py")
        asked = (facts.project, facts.source, "step")
        assert is_called(*asked) is called
        assert is_called_with_arguments(*asked) is given
        assert is_mentioned(*asked) is mentioned
        assert is_set(*asked) is assigned


@pytest.mark.parametrize(
    ("target", "tier"),
    [
        (Target("lightning", Version("2.1"), None, ""), Tier.ERROR),
        (Target("lightning", Version("1.8"), Version("2.2"), ""), Tier.WARNING),
        (Target("lightning", Version("1.8"), Version("1.9"), ""), None),
    ],
)
def test_removal_counts_by_target(target: Target, tier: Tier | None) -> None:
    assert removal_tier(target, Version("2.0")) is tier


@pytest.mark.parametrize(
    ("text", "versioned"),
    [
        ("call()", False),
        ("if VERSION < (2, 0):\n    call()", True),
        ("if VERSION >= (2, 0):\n    call()", False),  # the newest versions come here
        ("if epoch > 3:\n    call()", False),
        ("try:\n    call()\nexcept TypeError:\n    pass", True),
        ("try:\n    pass\nexcept TypeError:\n    call()", True),
        ("try:\n    call()\nfinally:\n    pass", False),
        ("import pytest\nwith pytest.raises(TypeError):\n    call()", True),
    ],
)
def test_code_for_some_versions(text: str, versioned: bool) -> None:
    facts = facts_of(text)
    call = next(each for each in facts.tree.all(cst.Call) if facts.names.method(each) == "call")
    assert is_versioned(facts, call) is versioned
