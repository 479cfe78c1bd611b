from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.autograd.discarded_tensor_result.drawn import TENSORS, Drawn
from lightlint.checks.modules.autograd.discarded_tensor_result.fields import Fields
from lightlint.checks.modules.autograd.discarded_tensor_result.moved_again import MovedAgain, read_behind
from lightlint.engine.events import Called, CalledUnknown, Forward, LossComputed, OperationDropped, ResultDropped
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.objects.type_tests import is_told
from lightlint.facts.releases.failures import is_expected
from lightlint.facts.tensors.computed import Computed
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import Draft, RawEdit, replace
from lightlint.values.core import Library, is_constant
from lightlint.values.training import ANY_PART, Loader, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_MOVING = {"to", "cuda", "cpu", "float", "half", "double", "long", "type"}
_PLACING = {"to", "cuda", "cpu"}
_MOVING_WORDS = frozenset(_MOVING)
_TENSOR_ONLY = {
    "unsqueeze", "squeeze", "permute", "view", "reshape", "clamp", "detach", "contiguous", "flatten", "transpose", "flip",
    "fliplr", "flipud", "roll", "rot90", "swapaxes", "movedim", "moveaxis",
}  # fmt: skip

# methods of tensors and arrays that no library has in place
_NEVER_IN_PLACE = {"unsqueeze", "squeeze", "permute"}
_REORDERING = (
    "flip", "fliplr", "flipud", "roll", "rot90", "transpose", "swapaxes", "moveaxis", "squeeze", "reshape", "ravel", "clip",
)  # fmt: skip
_FUNCTIONS = {f"numpy.{name}" for name in (*_REORDERING, "expand_dims")}
_FUNCTIONS |= {f"torch.{name}" for name in (*_REORDERING, "unsqueeze", "permute", "movedim", "flatten", "clamp")}

_IN_PLACE = re.compile(
    r"torch_geometric|torchgeo|transformers|BatchEncoding|\bdgl\b|monai|detectron2|mmcv|mmengine|kornia"
)

_OTHER_DEVICES = re.compile(r"cuda|\bmps\b|\bxla\b|\bxpu\b|\bhpu\b|\bnpu\b")


class DiscardedTensorResult(Check):
    def visit_Expr(self, statement: cst.Expr) -> None:
        call = statement.value.elt if isinstance(statement.value, cst.ListComp) else statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return
        receiver, method = call.func.value, call.func.attr.value
        if self.names.call(call) in _FUNCTIONS:
            if call is statement.value:
                self._judge_function(statement, call)
            return
        if method not in _MOVING | _TENSOR_ONLY or not self._is_tensor(receiver, statement):
            return
        if self._costs_nothing(statement, call):
            return
        text = self.code.text_of(receiver)
        lost = call is not statement.value or self._is_drawn(receiver)
        lost = lost or (isinstance(receiver, cst.Attribute) and not Fields(self.facts).may_be_set(receiver))
        self.report(
            call,
            f"`{text}.{method}()` returns a new tensor, which is dropped: `{text}` stays as it is",
            repair=self._repair(statement, text) if not lost else None,
            tier=self._tier(call, statement),
        )

    def _tier(self, call: cst.Call, statement: cst.CSTNode) -> Tier | None:
        """A note for a move to the CPU of what nothing reads after it: it stays on the GPU as long as it would anyhow."""
        name = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(name, cst.Name) or not isinstance(statement, cst.Expr):
            return None
        to = self.names.argument(call, "device", 0) if self.names.method(call) == "to" else None
        leaves = self.names.method(call) == "cpu" or (to is not None and self.names.constant(to.value) == "cpu")
        return Tier.NOTE if leaves and not self._is_read_later(statement, name) else None

    def _is_tensor(self, receiver: cst.BaseExpression, statement: cst.Expr) -> bool:
        drawn = Drawn(self.facts)
        if isinstance(receiver, cst.Subscript):
            known = is_told(self.facts, receiver)
            return known and drawn.is_read_besides(receiver, statement)
        if isinstance(receiver, cst.Attribute):
            fields = Fields(self.facts)
            return fields.is_tensor(receiver) and fields.is_read_besides(receiver)
        if not isinstance(receiver, cst.Name):
            return False
        method = self.names.method(statement.value)
        if (method in _NEVER_IN_PLACE and self._is_computed(receiver)) or self.facts.fact(Computed).is_tensor(receiver):
            return True
        return drawn.is_tensor(receiver) or (drawn.is_promised(receiver) and drawn.is_read_besides(receiver, statement))

    def visit_Assign(self, assign: cst.Assign) -> None:
        """A loop that binds the moved item to its own variable only: `for k, v in batch.items(): v = v.cuda()`."""
        target, call = assign.targets[0].target, assign.value
        if not isinstance(target, cst.Name) or not isinstance(call, cst.Call) or len(assign.targets) != 1:
            return
        name, method = target.value, self.names.method(call)
        if method not in _MOVING or not isinstance(call.func, cst.Attribute) or self.names.key(call.func.value) != name:
            return
        drawn = Drawn(self.facts)
        loops = [each for each in self.names.bindings.lookup(target) if each.kind is Kind.LOOP]
        binding = next((each for each in loops if self.tree.loops(assign)[:1] == [drawn.loop_of(each)]), None)
        known = binding is not None and (drawn.draws_tensors(binding) or is_told(self.facts, call.func.value))
        if binding is None or not known or self._is_read_later(assign, target):
            return
        message = f"`{name}.{method}()` returns a new tensor, and only the loop's own `{name}` is bound to it"
        self.report(call, message, repair=self._put_back(drawn, binding, target))

    def _is_read_later(self, assign: cst.Assign | cst.Expr, target: cst.Name) -> bool:
        """Whether something may read the name as the assignment, or a statement, leaves it."""
        read = read_behind(self.facts, assign, target)
        return read is None or bool(read)

    def _put_back(self, drawn: Drawn, binding: Binding, target: cst.Name) -> Repair | None:
        """The moved value put where it came from, where the loop has the key."""
        batch, loop = drawn.dict_of(binding), drawn.loop_of(binding)
        key = loop.target.elements[0].value if loop is not None and isinstance(loop.target, cst.Tuple) else None
        if batch is None or not isinstance(key, cst.Name):
            return None
        draft = replace(self.code, target, f"{batch.value}[{key.value}]")
        return Repair("put it back into the batch", draft, Applicability.UNSAFE)

    def _is_drawn(self, name: cst.BaseExpression) -> bool:
        """Whether a name is a loop's variable, whose new value nothing would keep."""
        return isinstance(name, cst.Name) and any(
            each.kind is Kind.LOOP and not each.path for each in self.names.bindings.lookup(name)
        )

    def _judge_function(self, statement: cst.Expr, call: cst.Call) -> None:
        """`np.fliplr(image)` where the image is used afterwards: it gives another array or tensor."""
        key = self.names.key(call.args[0].value) if call.args else ""
        into = self.names.argument(call, "out", 3) is not None or self.names.has_star(call)
        if not key or into or not self._is_used_after(call, key) or self._is_wanted(statement, call):
            return
        kind = "array" if (self.names.call(call) or "").startswith("numpy.") else "tensor"
        self.report(
            call,
            f"`{self.code.text_of(call.func)}()` returns a new {kind}, which is dropped: `{key}` stays as it is",
            repair=self._repair(statement, key) if "." not in key else None,  # a parameter takes no tensor
        )

    def _is_used_after(self, call: cst.Call, key: str) -> bool:
        names = self.tree.own(self.tree.owner(call), cst.Name, cst.Attribute)
        return any(
            self.names.key(each) == key and self.tree.order(each) > self.tree.order(call)
            for each in names
            if not self.tree.contains(call, each)
        )

    def _is_wanted(self, statement: cst.Expr, call: cst.Call) -> bool:
        """Whether the statement may stand for what it raises, or shows: a cell shows its last expression."""
        source = self.facts.source
        marked = source.is_in_cells and self.tree.owner(statement) is self.tree.module
        shown = marked or source.cell_at(self.facts.span(statement)[0]) is not None
        return shown or is_expected(self.facts, call)

    def _repair(self, statement: cst.Expr, name: str) -> Repair:
        start = self.facts.span(statement)[0]
        return Repair("assign the result", Draft((RawEdit(start, start, f"{name} = "),)), Applicability.UNSAFE)

    def _is_computed(self, name: cst.Name) -> bool:
        """Whether a name holds what a call or a batch gave, and no object of a class in sight with methods of its own."""
        found = self.names.bindings.lookup(name)
        plain = all(each.kind is Kind.LOOP or isinstance(each.value, cst.Call) for each in found)
        known = self.values.origins(name)
        return bool(found) and plain and not any(self.classes.local(each.name) for each in known)

    def wants_rest(self) -> frozenset[str]:
        """Those of moves, where a statement is nothing but a call of what may be taken from a tensor."""
        calls = [each.value for each in self.tree.all(cst.Expr)]
        moves = (isinstance(each, cst.Call) and self._may_move(each) for each in calls)
        return _MOVING_WORDS if any(moves) else frozenset()

    def _may_move(self, call: cst.Call) -> bool:
        named = self.names.method(call) in _MOVING or not isinstance(call.func, cst.Attribute)
        return named and self.tree.function(call) is not None and not self.names.of(call.func)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Moves of tensors whose results a statement drops."""
        dropped = [*entry.of(ResultDropped)]
        used = self._used_parts(entry) if dropped else set[Tensor]()
        others = {each.site for each in (*entry.of(Called), *entry.of(CalledUnknown))} if dropped else set()
        staying = self._staying(entry)
        for event in dropped:
            source = event.moved.moved_from or event.moved.shaped_from
            shaped = event.moved.moved_from is None
            if source is None or source.escaped or source.guessed or source.parameter:
                continue
            if source.role == "batch" and source not in used and not _is_any_used(source, used):
                continue
            if event.site in others:
                continue  # of this and that, of which some move in place
            call = self.node_of(event.site)
            statement = self.tree.statement(call) if call is not None else None
            said = (
                isinstance(call, cst.Call) and isinstance(statement, cst.Expr) and self._costs_nothing(statement, call)
            )
            if said or event in staying:
                continue
            sure = source.role == "batch" or source.origin is not None or source.graph or source.traits
            placed = shaped or source.device != "cuda"
            if sure and placed and all(each.known for each in event.where.conditions):
                tier = self._tier(call, statement) if isinstance(call, cst.Call) and statement is not None else None
                tier = Tier.NOTE if _is_moved_anyhow(entry, event, source) else tier
                yield Fault.of(event, self._told(call, "call" if shaped else "move"), tier=tier)

        for lost in entry.of(OperationDropped):
            node = self.node_of(lost.site)
            if node is None or not isinstance(self.tree.parent(node), cst.Expr) or self.tree.function(node) is None:
                continue  # a cell shows it
            if not is_expected(self.facts, node):
                message = f"what `{lost.symbol}` gives is a new tensor, which is dropped: neither side of it changes"
                yield Fault.of(lost, message)

    def clears(self, entry: Entry) -> Iterator[Site]:
        """Moves to where everything lies."""
        staying = self._staying(entry)
        lost = {event.site for event in entry.of(ResultDropped) if event not in staying}
        yield from (event.site for event in staying if event.site not in lost)

    def _staying(self, entry: Entry) -> list[ResultDropped]:
        """The moves of what lies there already, and those to the one device that a file names, the CPU: nothing is lost yet."""
        moves = [each for each in entry.of(ResultDropped) if each.moved.moved_from]
        to_cpu = any(each.moved.device == "cpu" for each in moves)
        alone = to_cpu and not _OTHER_DEVICES.search(self.facts.source.text)
        return [each for each in moves if each.moved.stays or (alone and each.moved.device == "cpu")]

    def _costs_nothing(self, statement: cst.Expr, call: cst.Call) -> bool:
        """Whether a dropped move is wanted, or whatever reads the tensor moves it itself, in who calls the function, too."""
        if self._is_wanted(statement, call):
            return True
        match call.func:
            case cst.Attribute(value=cst.Name() as name, attr=attr) if attr.value in _PLACING:
                return MovedAgain(self.facts).is_moved_again(name, statement)
        return False

    def repair(self, node: cst.CSTNode, _: Fault) -> Repair | None:
        """A part of a batch is put where it came from."""
        statement, func = self.tree.parent(node), node.func if isinstance(node, cst.Call) else None
        part = func.value if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Subscript) else None
        if part is None or not isinstance(statement, cst.Expr):
            return None
        return self._repair(statement, self.code.text_of(part))

    def _told(self, call: cst.CSTNode | None, what: str) -> str:
        match call:
            case cst.Call(func=cst.Attribute(value=cst.Subscript() as part, attr=cst.Name(value=method))):
                text = self.code.text_of(part)
                return f"`{text}.{method}()` returns a new tensor, which is dropped: `{text}` stays as it is"
        return f"this {what} returns a new tensor, which is dropped: the old one stays as it is"

    def _used_parts(self, entry: Entry) -> set[Tensor]:
        """The parts of batches that surely are tensors: a loss or a layer of torch takes them as they are, or another module
        one that is called as tensors are. Where a library makes objects that move in place, a part may be one."""
        others = map(self.facts.project.text, self.facts.rehearsed.imported)
        if any(map(_IN_PLACE.search, (self.facts.source.text, *others))):
            return set()
        told = [each for event in entry.of(LossComputed) for each in (event.input, event.target)]
        for event in entry.of(Forward):
            layer = isinstance(event.module.cls, Library) and not event.module.opaque
            told += (each for each in event.inputs if layer or _is_tensor(each))
        told += [each.part_of for each in told if isinstance(each, Tensor)]
        return {e for e in told if isinstance(e, Tensor) and e.role == "batch" and (e.part is not None or _is_own(e))}


def _is_any_used(value: Tensor, used: set[Tensor]) -> bool:
    """Whether a tensor lies in a batch that torch's own collation made and that is used as it came: as a whole, or, where the
    tensor is any value of it, in some part."""
    if not _is_own(value) or value.whole is None:
        return False
    return value.whole in used or (value.part == ANY_PART and any(each.whole is value.whole for each in used))


def _is_own(value: Tensor) -> bool:
    """Whether a batch, or a part of one, comes from torch's own loader and collation."""
    loader = value.batch_of
    if not isinstance(loader, Loader) or is_constant(loader.arguments.get("batch_size"), None):
        return False
    return isinstance(loader.cls, Library) and loader.cls.path == "torch.utils.data.DataLoader" and _is_collated(value)


def _is_tensor(part: Tensor) -> bool:
    """Whether a part of a batch is called as tensors are, lies under a key, or was put together in torch's own way."""
    return _is_collated(part) or isinstance(part.part, str) or TENSORS.fullmatch(part.named) is not None


def _is_collated(part: Tensor) -> bool:
    """Whether torch's own collation put a batch together."""
    loader = part.batch_of
    return loader is not None and not (loader.assumed or loader.open_arguments or "collate_fn" in loader.arguments)


def _is_moved_anyhow(entry: Entry, event: ResultDropped, source: Tensor) -> bool:
    """Whether all passes are of DataParallel, which moves what it is given, and no loss takes the tensor beside their results."""
    passes = [*entry.of(Forward)]
    losses = [tensor for each in entry.of(LossComputed) for tensor in (each.input, each.target) if tensor is not None]
    moved = bool(passes) and all(each.module.wrapper == "data-parallel" for each in passes)
    return event.moved.device == "cuda" and moved and source not in losses
