"""Exceptions and warnings of the finding's lines."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import FILE, at, claim, event, judged, line, run

from lightlint.confirm.records import Event

INDEX = claim("scalar-loss-indexed", "exception", "`loss` has no dimension to index: an IndexError")
ARGUMENT = claim("trainer-removed-arg", "exception", "`Trainer` has no argument `gpus`")
HOOK = claim("hook-removed-raises", "exception", "`fit` refuses a module that has `validation_epoch_end`")
FREED = claim("backward-over-freed-graph", "exception", "runs through `fake` again")
AUTOCAST = claim("bce-under-autocast", "exception", "binary cross entropy under autocast raises on CUDA")
PICKLED = claim("unpicklable-worker-callable", "exception", "`map` pickles its function, which is a lambda")
CAST = claim("deprecated-cuda-amp", "warning", "`torch.cuda.amp.autocast` is deprecated", tier="warning")
OLD = claim("torch-deprecated-name", "warning", "`torch.range` is deprecated", tier="warning")
PAYLOAD = claim("checkpoint-non-tensor-payload", "checkpoint-loads", "`args` is an argparse Namespace")
KEYS = claim("strict-false-unchecked", "unmatched-keys", "keys that do not fit `model` are passed over", tier="note")
GUARD = claim("main-guard-missing", "spawn-run", "nothing keeps the processes from running this line again")


def error(kind: str, message: str, row: int = 10) -> Event:
    return event("exception", type=kind, message=message, frames=[[FILE, row, "main"], ["/lib/x.py", 5, "f"]])


def test_what_comes_up_through_the_line_is_confirmed() -> None:
    found = run([line(then=None, raised="IndexError: invalid index of a 0-dim tensor"), line()])
    assert judged(INDEX, found) == ("confirmed", "the line raised IndexError: invalid index of a 0-dim tensor")


def test_another_error_of_the_line_leaves_it_open() -> None:
    assert judged(INDEX, run([line(raised="KeyError: 'x'")]))[0] == "open"


def test_a_line_that_runs_is_refuted() -> None:
    assert judged(INDEX, run([line(), line()]))[0] == "refuted"


def test_lines_whose_statement_was_not_left_are_open() -> None:
    assert judged(INDEX, run([line(then=8)]))[0] == "open"


def test_a_line_that_did_not_run_says_why() -> None:
    assert judged(INDEX, run([]))[0] == "not reached"
    assert judged(INDEX, run([error("ValueError", "x", row=3)], ended="raised"))[0] == "not checked"
    assert judged(INDEX, run([event("end", reason="cut")], ended="cut"))[0] == "beyond cut"


def test_an_argument_is_refused_by_its_call() -> None:
    named = error("TypeError", "Trainer.__init__() got an unexpected keyword argument 'gpus'", row=8)
    other = error("TypeError", "Net.__init__() got an unexpected keyword argument 'width'", row=8)
    assert judged(ARGUMENT, run([line(then=11), named], ended="raised"))[0] == "confirmed"
    assert judged(ARGUMENT, run([line(then=11), other], ended="raised"))[0] == "open"


def test_a_hook_is_refused_when_the_fit_starts() -> None:
    message = "Support for `validation_epoch_end` has been removed in v2.0.0."
    assert judged(HOOK, run([line(), error("NotImplementedError", message, row=90)], ended="raised"))[0] == "confirmed"
    assert judged(HOOK, run([line(), event("step", n=1)]))[0] == "refuted"
    assert judged(HOOK, run([line()]))[0] == "open"


def test_a_second_backward_pass_is_needed_to_refute() -> None:
    assert judged(FREED, run([line()]))[0] == "open"
    assert judged(FREED, run([line(), line()]))[0] == "refuted"


def test_what_a_gpu_raises_is_not_refuted_without_one() -> None:
    assert judged(AUTOCAST, run([line()]))[0] == "not observable"


def test_pickling_is_recognised_by_its_message() -> None:
    raised = line(then=None, raised="AttributeError: Can't pickle local object 'f.<locals>.<lambda>'")
    assert judged(PICKLED, run([raised], ended="raised"))[0] == "confirmed"
    assert judged(PICKLED, run([line()]))[0] == "open"


def warned(message: str, row: int = 10) -> Event:
    return event("warning", category="FutureWarning", message=message, places=at(row))


@pytest.mark.parametrize(
    ("about", "events", "outcome"),
    [
        (CAST, [warned("`torch.cuda.amp.autocast(args...)` is deprecated.")], "confirmed"),
        (CAST, [], "refuted"),
        (OLD, [warned("torch.range is deprecated and will be removed")], "confirmed"),
        (OLD, [warned("torch.range is deprecated", row=44)], "open"),
        (OLD, [warned("the data are not sorted")], "open"),
        (OLD, [], "open"),
    ],
)
def test_warnings(about: Any, events: list[Event], outcome: str) -> None:
    assert judged(about, run([line(), *events]))[0] == outcome


def saved(refused: str, row: int) -> Event:
    return event("saved", path="a.pt", error=refused, places=at(row))


def test_a_payload_that_cannot_be_loaded() -> None:
    refused = "Weights only load failed. Unsupported global: GLOBAL argparse.Namespace was not an allowed global"
    assert judged(PAYLOAD, run([line(), saved(refused, 12)])) == (
        "confirmed",
        "`torch.load` with `weights_only=True` refuses what was saved: it holds `argparse.Namespace`",
    )
    assert judged(PAYLOAD, run([line(), saved("", 12)]))[0] == "refuted"
    assert judged(PAYLOAD, run([line(), saved("", 12), saved("", 40)]))[0] == "open"
    assert judged(PAYLOAD, run([line()]))[0] == "open"


def test_a_payload_is_told_by_the_save_behind_it() -> None:
    came = Event({**line(), "function": "main"})
    namespace, array = ("GLOBAL argparse.Namespace was not allowed", "GLOBAL numpy._core.multiarray.scalar was not")
    files = [saved("", 4), saved(namespace, 14), saved("", 30)]
    assert judged(PAYLOAD, run([came, *files]))[0] == "confirmed"
    assert judged(PAYLOAD, run([came, saved("", 4), saved(array, 14)]))[0] == "open"  # refused before torch comes to it
    assert judged(PAYLOAD, run([saved("", 4), event("end", reason="cut")]))[0] == "beyond cut"


def test_keys_that_a_load_passes_over() -> None:
    loads = [event("loaded", missing=each, unexpected=[], places=at(10)) for each in (["bias"], [])]
    assert judged(KEYS, run([line(), loads[0]]))[0] == "confirmed"
    assert judged(KEYS, run([line(), loads[1]]))[0] == "refuted"


def test_a_spawned_process_that_dies_of_the_script() -> None:
    dies = error("RuntimeError", "An attempt has been made to start a new process before the bootstrapping phase")
    assert judged(GUARD, run([line()], others=([dies],)))[0] == "confirmed"
    assert judged(GUARD, run([line()]))[0] == "not observable"


@pytest.mark.parametrize(
    ("name", "message", "kind", "said", "outcome"),
    [
        (
            "missing-super-init",
            "`__init__` of `Data`",
            "AttributeError",
            "'Data' object has no attribute 'x'",
            "confirmed",
        ),
        ("missing-super-init", "`__init__` of `Data`", "AttributeError", "'Batch' object has no attribute 'x'", "open"),
        ("plateau-without-monitor", "`ReduceLROnPlateau`", "MisconfigurationException", "no monitor `loss`", "open"),
        ("model-assigned-from-load", "`model`", "TypeError", "'_IncompatibleKeys' object is not callable", "confirmed"),
        ("model-assigned-from-load", "`model`", "TypeError", "'NoneType' object is not callable", "open"),
    ],
)
def test_an_error_of_other_lines_is_known_by_its_text(
    name: str, message: str, kind: str, said: str, outcome: str
) -> None:
    assert (
        judged(claim(name, "exception", message), run([line(), error(kind, said, row=90)], ended="raised"))[0]
        == outcome
    )
