"""What torch's losses, softmaxes, comparisons and dropouts are given where a finding points at them.

Compiled and scripted code sees the functions as torch has them: those calls are not observed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.meters.numbers import Lines, Numbers, is_module, is_tensor

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_LOSSES = (
    "cross_entropy",
    "nll_loss",
    "kl_div",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
)
_SOFTMAXES = ("softmax", "log_softmax", "softmin")
_DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
    "scaled_dot_product_attention",
)
_MOST_CALLS = 200
_DEEPEST = 8  # frames between a function and the module that calls it
Tell = Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]


def install(session: Session) -> None:
    """Watch the functions from the moment torch is there, before the program takes them by name."""
    meter = _Functions(session)
    session.on_import("functions", "torch", meter.watch)


class _Functions:
    """The calls so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._originals: list[tuple[Any, str, Any]] = []
        self._made: dict[int, list[int]] = {}  # findings on whose lines a softmax module was made
        self._numbers = Numbers()
        self._calls = 0

    def watch(self, torch: ModuleType) -> None:
        """Wrap each function in its place."""
        functional = torch.nn.functional
        guard = self._session.guard("functions")
        for names, tell in ((_LOSSES, self._loss), (_SOFTMAXES, self._softmax), (_DROPOUTS, self._dropout)):
            for name in names:
                if hasattr(functional, name):
                    self._wrap(torch, functional, name, guard(tell))
        compare = guard(self._compare)
        for holder, name in ((torch.Tensor, "__eq__"), (torch.Tensor, "eq"), (torch, "eq")):
            self._wrap(torch, holder, name, compare)
        for name in ("Softmax", "LogSoftmax", "Softmin"):
            self._watch_made(getattr(torch.nn, name), guard(self._note))
        self._watch_script(torch)

    def _wrap(self, torch: Any, holder: Any, name: str, tell: Tell) -> None:
        original = getattr(holder, name)
        compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

        @wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not compiling() and not is_quiet():
                tell(name, args, kwargs, result)
            return result

        self._originals.append((holder, name, original))
        setattr(holder, name, wrapped)

    def _watch_made(self, module_class: Any, note: Any) -> None:
        construct = module_class.__init__

        @wraps(construct)
        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            construct(module, *args, **kwargs)
            note(module)

        module_class.__init__ = __init__

    def _note(self, module: Any) -> None:
        findings = self._lines.now()
        if findings:
            self._made[self._numbers.of(module)] = findings

    def _watch_script(self, torch: Any) -> None:
        """The script compiler reads the text of what it is given, which has to be torch's own."""
        script = torch.jit.script

        @wraps(script)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 2
            with self._as_torch_has_them():
                return script(*args, **kwargs)

        torch.jit.script = wrapped

    @contextmanager
    def _as_torch_has_them(self) -> Iterator[None]:
        ours = [(holder, name, getattr(holder, name)) for holder, name, _ in self._originals]
        for holder, name, function in self._originals:
            setattr(holder, name, function)
        try:
            yield
        finally:
            for holder, name, function in ours:
                setattr(holder, name, function)

    def _here(self) -> list[int]:
        """The findings that a call belongs to: those of its lines, and of where the module that makes it was built."""
        if self._calls >= _MOST_CALLS:
            return []
        owner = _owner()
        findings = self._lines.now() + (self._made.get(self._numbers.of(owner), []) if owner is not None else [])
        self._calls += bool(findings)
        return findings

    def _loss(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        given: Any = args[0] if args else kwargs.get("input")
        findings = self._lines.now()
        if not is_tensor(given) or not is_tensor(result) or not given.numel() or self._calls >= _MOST_CALLS:
            return
        mean = kwargs.get("reduction", "mean") == "mean" and result.dim() == 0
        self._calls += 1
        values = given.detach().float()
        self._session.record.emit(
            "loss-call",
            function=name,
            findings=findings,
            low=float(values.min()),
            high=float(values.max()),
            rows=_off(values.sum(1)) if values.dim() > 1 else None,
            log_rows=_off(values.exp().sum(1)) if values.dim() > 1 else None,
            value=float(result.detach()) if result.dim() == 0 else None,
            reduction="mean" if mean else "other",
            size=len(values) if values.dim() else 1,
        )

    def _softmax(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        given: Any = args[0] if args else kwargs.get("input")
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        if dim is not None or not (findings := self._here()):
            return
        picked = 0 if given.dim() in {0, 1, 3} else 1  # torch's own choice
        self._session.record.emit("softmax", function=name, dimensions=given.dim(), picked=picked, findings=findings)

    def _compare(self, _name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        right: Any = args[1] if len(args) > 1 else kwargs.get("other")
        if not is_tensor(right) or not is_tensor(result) or not (findings := self._here()):
            return
        shapes = [list(args[0].shape), list(right.shape), list(result.shape)]
        self._session.record.emit("compare", shapes=shapes, findings=findings)

    def _dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if not (findings := self._here()):
            return
        owner = _owner()
        attention = name == "scaled_dot_product_attention"
        given: Any = args[0] if args else kwargs["query" if attention else "input"]
        position, key, default = (4, "dropout_p", 0.0) if attention else (1, "p", 0.5)
        training = (
            True
            if attention
            else (args[2] if len(args) > 2 else kwargs.get("training", not name.endswith("alpha_dropout")))
        )
        changed = None
        if not attention and is_tensor(result) and given.shape == result.shape and not kwargs.get("inplace"):
            changed = float((given.detach() != result.detach()).float().mean())
        self._session.record.emit(
            "dropout",
            function=name,
            p=float(args[position] if len(args) > position else kwargs.get(key, default)),
            training=bool(training),
            owner=owner.training if owner is not None else None,
            changed=changed,
            findings=findings,
        )


def _off(sums: Any) -> float:
    """The largest distance of sums from 1."""
    return float((sums - 1).abs().max())


def _owner() -> Any:
    """The innermost module in whose method the program is."""
    frame = sys._getframe(2)
    for _ in range(_DEEPEST):
        holder = frame.f_locals.get("self")
        if is_module(holder):
            return holder
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
