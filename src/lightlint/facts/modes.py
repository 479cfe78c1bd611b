"""Training and eval mode: which modules a call leaves in eval mode, which it trains, and which act by their mode."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.across import module_elsewhere
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import NN_MODULE
from lightlint.facts.mode_setting import ModeSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightlint.facts.file import FileFacts

    Wanted = Callable[[cst.Call], bool]

_DEPTH = 4
_ROOT = re.compile(r"[.\[]")
_BY_MODE = re.compile(
    r"torch\.nn\.(?:(?:Lazy|Sync)?BatchNorm\w*|(?:Feature)?(?:Alpha)?Dropout[123]?d?|Transformer\w*)$"
)
_WITH_RATE = re.compile(r"torch\.nn\.(?:(?:Feature)?(?:Alpha)?Dropout[123]?d?|Transformer\w*)$")
_FUNCTIONAL = re.compile(r"torch\.nn\.functional\.(?:feature_)?(?:alpha_)?dropout[123]?d?$")
VISION = re.compile(
    r"torchvision\.models\.(?:\w+\.)?(?:wide_)?(?:resne(?:t|xt)|densenet|mobilenet|efficientnet|vgg|alexnet|googlenet|"
    r"inception|shufflenet|squeezenet|mnasnet|regnet)\w*$"
)
_PLAIN = re.compile(
    r"torch\.nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|\w*ReLU6?|GELU|SiLU|ELU|Tanh|Sigmoid|Softmax|LogSoftmax|Identity|"
    r"Flatten|Unflatten|LayerNorm|GroupNorm|(?:Adaptive)?(?:Max|Avg)Pool\w+|Sequential|ModuleList|ModuleDict|Parameter|"
    r"Upsample|Softplus|\w+Pad[123]d|PixelShuffle|functional\.(?!\w*dropout|batch_norm|scaled_dot)\w+)$"
)
_WORDS = re.compile("dropout|batchnorm|transformer|models", re.IGNORECASE)


class Modes:
    """Modes of the modules of one file.

    A module is told by its key (`model`, `self.net`) in the function that makes the call; what helpers of the file do
    to their parameters is told by what the call gives for them. An empty key stands for a module out of sight.
    """

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._names = facts.names
        self._left_inside: dict[tuple[int, int], set[str]] = {}
        self._forwarded: dict[tuple[Wanted, int, int], set[str]] = {}
        self._training: dict[int, bool] = {}  # by helper

    @cached_property
    def setting(self) -> ModeSetting:
        """What may set the modes of modules."""
        return ModeSetting(self._facts)

    def acts_by_mode(self, module: cst.CSTNode | None) -> bool | None:
        """Whether a module surely holds dropout or batch norm (True), surely holds neither (False), or None."""
        found = {self._acts(origin.name, origin.call) for origin in self._facts.values.unwrapped(module)}
        return found.pop() if len(found) == 1 else None

    def _acts(self, name: str, call: cst.Call | None, depth: int = 0) -> bool | None:
        if VISION.match(name):
            return True
        if _BY_MODE.match(name):
            return not self._is_off(name, call)
        if name in {"torch.nn.Sequential", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"}:
            return self._acts_in(call, depth) if call is not None else None
        node = self._facts.classes.local(name)
        if node is not None and depth < _DEPTH and self._facts.classes.is_a(node, NN_MODULE):
            # a notebook may define one class several times
            same = [each for each in self._facts.tree.all(cst.ClassDef) if self._names.defined(each) == name]
            found = {self._acts_in(each, depth + 1) for each in same}
            return found.pop() if len(found) == 1 else None
        return False if _PLAIN.match(name) else self._acts_elsewhere(name, call, depth)

    def _acts_elsewhere(self, name: str, call: cst.Call | None, depth: int) -> bool | None:
        """What a class of another file of the project does; its text is asked before its tree is made."""
        found = module_elsewhere(self._facts, name, _WORDS) if depth <= _DEPTH else None
        if found is None:
            return None
        other, node = found
        # a class may keep to a mode of its own
        own = any(each.value in {"eval", "train"} for each in other.tree.within(node, cst.Name))
        if own or call is None or self._leaves_off(call, other.classes.method(node, "__init__")):
            return None
        return other.modes._acts_in(node, depth + 1)

    def _leaves_off(self, call: cst.Call, init: cst.FunctionDef | None) -> bool:
        """Whether a call that makes a module may leave a rate of dropout at 0, where that is the default."""
        if init is None:
            return False
        positional = [*init.params.posonly_params, *init.params.params][1:]
        for parameter in (*positional, *init.params.kwonly_params):
            name, default = parameter.name.value, parameter.default
            if "drop" not in name.lower() or default is None or self._names.constant(default) not in (0, None):
                continue
            given = self._names.argument(call, name, positional.index(parameter) if parameter in positional else None)
            if given is None or given.star or self._names.constant(given.value) in (0, None):
                return True
        return False

    def _acts_in(self, body: cst.CSTNode, depth: int) -> bool | None:
        """What the modules and functions that a class or a call mentions agree on."""
        tree, seen = self._facts.tree, set[bool | None]()
        for call in tree.within(body, cst.Call):
            name = self._names.of(call.func) or ""
            if call is body or not name:
                continue
            if _FUNCTIONAL.match(name):
                return True
            made = name.startswith("torch.nn.") or self._facts.classes.name_is_a(name, NN_MODULE)
            if made or VISION.match(name):
                seen.add(self._acts(name, call, depth + 1) if call is not body else False)
        if True in seen:
            return True
        words = {each.value for each in tree.within(body, cst.Name)}
        sure = None not in seen and "training" not in words and bool(seen) and isinstance(body, cst.ClassDef)
        return False if sure else None

    def _is_off(self, name: str, call: cst.Call | None) -> bool:
        """Whether a dropout layer is made with a rate of 0."""
        if call is None or not _WITH_RATE.match(name):
            return False
        given = self._names.argument(call, "p", 0) or self._names.argument(call, "dropout")
        return given is not None and self._names.constant(given.value) in (0, 0.0)

    def left_in_eval(self, call: cst.Call, depth: int = 0) -> set[str]:
        """The modules that a call puts in eval mode and leaves in it."""
        if self.is_eval(call):
            return {self._receiver(call)}
        callee = self._facts.steps.callee(call) if depth < _DEPTH else None
        if callee is None:
            return set()
        key = id(callee), depth
        if key not in self._left_inside:
            self._left_inside[key] = self._left_by(callee, depth)
        return self._outside(callee, call, self._left_inside[key])

    def _left_by(self, callee: cst.FunctionDef, depth: int) -> set[str]:
        """The modules that a helper leaves in eval mode, by its own keys."""
        if self._facts.tree.own(callee.body, cst.Yield):
            return set()
        flow, inner = self._facts.flow(callee), self._facts.tree.own(callee.body, cst.Call)
        back = [each for each in inner if self.may_train(each)]
        found = [
            (each, key)
            for each in inner
            if each not in back and not self._is_fenced(each)
            for key in self.left_in_eval(each, depth + 1)
        ]
        return {key for each, key in found if flow.reaches(each, [flow.end], avoiding=back)}

    def is_eval(self, call: cst.Call) -> bool:
        """`net.eval()` or `net.train(False)`."""
        method = self._names.method(call)
        if not isinstance(call.func, cst.Attribute) or self._names.call(call):
            return False
        if method == "eval":
            return not call.args
        return method == "train" and len(call.args) == 1 and self._names.constant(call.args[0].value) is False

    def _is_fenced(self, call: cst.Call) -> bool:
        """Whether a context manager that may restore the mode stands around a call."""
        above = [each for each in self._facts.tree.ancestors(call) if isinstance(each, cst.With)]
        words = [
            name.value for each in above for item in each.items for name in self._facts.tree.within(item, cst.Name)
        ]
        return any(re.search("eval|train|mode", word) for word in words)

    def _receiver(self, call: cst.Call) -> str:
        return self._names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""

    def may_train(self, call: cst.Call) -> bool:
        """Whether a call may put some module in training mode: by `train()`, through a helper, or out of sight."""

        def switches(each: cst.Call) -> bool:
            method = self._names.method(each)
            if self.is_eval(each):
                return False
            if method in {"train", "apply", "map"} or re.search(
                r"(?:^|_)modes?(?:$|_)|training_mode|to_train|set_train", method
            ):
                return self._facts.steps.callee(each) is None
            return False

        callee = self._facts.steps.callee(call)
        if callee is None:
            return switches(call)
        if id(callee) not in self._training:
            self._training[id(callee)] = self._facts.steps.leads(call, switches)
        return self._training[id(callee)]

    def records(self, call: cst.Call) -> bool:
        """Whether autograd surely records at a call."""
        return not self._facts.gradients.may_be_off(call)

    def forwards(self, call: cst.Call, wanted: Wanted, depth: int = 0) -> set[str]:
        """The keys of what a call calls that is `wanted`, directly or in helpers: `model` for `model(x)`."""
        key = self._names.key(call.func).removesuffix(".forward")
        found = {key} if key and wanted(call) else set[str]()
        callee = self._facts.steps.callee(call) if depth < _DEPTH else None
        if callee is None:
            return found
        known = wanted, id(callee), depth
        if known not in self._forwarded:
            inner = self._facts.tree.own(callee.body, cst.Call)
            self._forwarded[known] = set().union(*(self.forwards(each, wanted, depth + 1) for each in inner))
        return found | self._outside(callee, call, self._forwarded[known]) - {""}

    def _outside(self, callee: cst.FunctionDef, call: cst.Call, keys: set[str]) -> set[str]:
        """The keys that the caller has for what a helper knows under keys of its own; empty for what stays inside."""
        by_root: dict[str, set[str]] = defaultdict(set)
        for key in keys:
            by_root[_ROOT.split(key, maxsplit=1)[0]].add(key)
        found: set[str] = set()
        for root, same in by_root.items():
            outer = self._root_outside(callee, call, root)
            found |= same if outer == root else {outer + key[len(root) :] if outer else "" for key in same}
        return found

    def _root_outside(self, callee: cst.FunctionDef, call: cst.Call, root: str) -> str:
        """What the caller calls the object that a helper knows by a name; empty for what stays inside."""
        bound = self._names.bindings.lookup_in(root, callee) if root else []
        if not root or (
            any(each.scope is callee for each in bound) and any(each.kind is not Kind.PARAMETER for each in bound)
        ):
            return ""
        if not any(each.scope is callee for each in bound):
            return root  # a name of the module's
        params = [each.name.value for each in callee.params.params]
        if self._facts.tree.class_of(callee) is not None and params[:1] == [root]:
            return self._receiver(call)
        given = self._facts.values.given(callee, call, root)
        return self._names.key(given) if given is not None else ""
