"""Methods of lists, dicts and texts."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from lightlint.engine.arguments import Arguments
from lightlint.engine.containers import extend, listed, note_filled, note_next
from lightlint.engine.events import Appended, CopySet, CudaUsed, Emptied, StateRead
from lightlint.engine.events.huggingface import ColumnAsked, TalkAsked
from lightlint.engine.machine import WORKER, Machine, Test
from lightlint.models.names.tables import MOVES
from lightlint.values.core import (
    ARRAYS,
    NONE,
    Bound,
    Class,
    Constant,
    Function,
    Library,
    Mapping,
    Method,
    NoneOf,
    Partial,
    Sequence,
    Unknown,
    Value,
    is_constant,
    names_cuda,
    number_of,
    traits_of,
    written,
)
from lightlint.values.training import Tensor, tensors_in

_MOST_ITEMS = 40


def _note_talk(machine: Machine, name: str, given: Arguments, node: ast.AST) -> None:
    """Write down that the messages of a talk are asked for what only a text has."""
    asked = given.positional[0] if given.positional else None
    of_lists = hasattr(list, name)
    text = name in ("count", "index") and asked is not None and not isinstance(asked, (Mapping, Sequence))
    if text or (hasattr(str, name) and not of_lists):
        machine.emit(TalkAsked(machine.where(node), f"`{name}`", raises=name != "count"))


def sequence_method(machine: Machine, value: Sequence, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a list, set or deque."""
    if value.talk:
        _note_talk(machine, name, given, node)
    first = given.positional[0] if given.positional else None
    if name in ("append", "appendleft", "add") and first is not None:
        note_added(machine, value, first, node)
        if len(value.items) < _MOST_ITEMS:
            value.items.append(first)
        else:
            value.more = True
        return NoneOf(name)
    if name in ("extend", "update") and first is not None:
        items, known = listed(machine, first, node)
        if items or not known:
            note_added(machine, value, items[0] if items else first, node)
        extend(value, items, known=known)
        return NoneOf(name)
    if name in ("pop", "popleft", "remove"):
        machine.emit(Emptied(machine.where(node), value))
        if name == "popleft" or (name == "pop" and is_constant(first, 0)):
            note_next(machine, value, node)
    if name == "clear":
        value.items.clear()
        value.more = False
        machine.emit(Emptied(machine.where(node), value))
        return NoneOf(name)
    if name in ("pop", "popleft"):
        if not value.items or value.more:
            return value.items[-1] if value.items else Unknown()
        index = number_of(first) if first is not None else (-1 if name == "pop" else 0)
        if index is None or not -len(value.items) <= index < len(value.items):
            return Unknown()
        return value.items.pop(int(index))
    if name == "insert" and len(given.positional) > 1:
        index = number_of(first)
        value.items.insert(int(index) if index is not None else 0, given.positional[1])
        return NoneOf(name)
    if name == "copy":
        return Sequence(value.items, value.kind, more=value.more)
    if name == "remove":
        value.more = True
        return NoneOf(name)
    if name in ("sort", "reverse"):
        value.sorted = name == "sort"
        return NoneOf(name)
    if name in ("index", "count"):
        return Unknown(plain=True)
    return Unknown()


def note_added(machine: Machine, container: Sequence, value: Value, node: ast.AST) -> None:
    """Something goes into a list, set or deque."""
    consumed = any(graph.consumed for item in container.items[-3:] for t in tensors_in(item) for graph in t.graph)
    machine.emit(Appended(machine.where(node), container, value, consumed))
    container.grows |= any(not loop.known for loop in machine.loops[container.depth :])
    note_filled(machine, container, value)


def mapping_method(machine: Machine, value: Mapping, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a dict."""
    if value.loaded is not None:
        key = given.get(0, "key") if name in ("get", "pop", "setdefault") else None
        machine.emit(StateRead(machine.where(node), value.loaded, value, key))
        if machine.phases[-1] == WORKER and (name == "cuda" or (name == "to" and any(map(names_cuda, given.values())))):
            machine.emit(CudaUsed(machine.where(node)))  # what was loaded is a tensor then
    if value.encoding is not None and name in MOVES:
        return _moved(machine, value, name, given, node)
    if name in ("items", "values", "keys"):
        return _view(value, name)
    asked = given.get(0, "key")
    if name == "pop" and value.batch_of is not None and isinstance(asked, Constant) and len(given.values()) == 1:
        column = asked.value
        if isinstance(column, str) and column not in value.items:
            machine.emit(ColumnAsked(machine.where(node), value.batch_of, column, value.row_of))
    if name == "popitem" or (name == "pop" and not isinstance(asked, Constant)):
        machine.emit(Emptied(machine.where(node), value))  # of one entry, whichever
    if name in ("get", "pop", "setdefault"):
        return _entry(machine, value, name, given)
    if name == "update":
        change = given.get(0, "")
        value.rewritten |= change is not None
        if value.copied is not None:
            machine.emit(CopySet(machine.where(node), value.copied, value))
        if isinstance(change, Mapping):
            value.items.update(change.items)
            value.said |= change.places()
            value.more |= change.more
        elif change is not None:
            value.more = True
            value.items = {key: _perhaps(machine, key, each) for key, each in value.items.items()}
        value.items.update(given.keywords)
        value.said |= dict.fromkeys(given.keywords, machine.site(node))
        return NoneOf(name)
    if name == "copy":
        copied = Mapping(value.items, more=value.more, source=value.source)
        copied.made, copied.depth, copied.said = value.made, value.depth, value.places()
        copied.encoding, copied.rewritten = value.encoding, value.rewritten
        return copied
    if name == "clear":
        value.items.clear()
        value.more = False
        machine.emit(Emptied(machine.where(node), value))
        return NoneOf(name)
    return Unknown()


def _moved(machine: Machine, batch: Mapping, name: str, given: Arguments, node: ast.AST) -> Mapping:
    """`batch.to(device)` of what a tokenizer gave."""
    found = Mapping(batch.items, more=batch.more)
    found.encoding = batch.encoding
    for key, each in batch.items.items():
        if isinstance(each, Tensor):
            found.items[key] = machine.models.call_method(machine, Method(each, name), given, node)
    return found


def _perhaps(machine: Machine, key: Hashable, value: Value) -> Value:
    """An entry that something out of sight may have replaced: an option is what it was unless a run says otherwise."""
    if isinstance(value, Constant):
        return Unknown(("entry", machine.clock, key), plain=True, default=value)
    return Unknown() if isinstance(value, (Library, Class, Function, Partial)) else value


def _view(value: Mapping, name: str) -> Sequence:
    keys: list[Value] = [
        Constant(key) if isinstance(key, (str, int, float, bool)) else Unknown(key, plain=True) for key in value.items
    ]
    if name == "keys":
        return Sequence(keys, more=value.more)
    if name == "values":
        return Sequence(value.items.values(), more=value.more)
    rows = [Sequence([key, item], "tuple") for key, item in zip(keys, value.items.values(), strict=True)]
    shown = Sequence(rows, more=value.more)
    shown.rows_of = value
    return shown


def chosen(machine: Machine, value: Mapping, index: Value) -> Value | None:
    """What of a dict something unknown chooses: as tests have found it, else by what an option defaults to, else the first.

    Of a table of commands each is rehearsed, as if tests for their names chose it, and of one of presets, where none is usual.
    """
    keys: dict[Hashable, Hashable] = {("constant", type(each).__name__, each): each for each in value.items}
    usual = written(index)
    first = [usual.key] if usual is not None and usual.key in keys else []
    options = [*first, *keys]
    is_one_of = not machine.loops and (is_table(machine, value) or (not first and _are_presets(value)))
    places = {key: _place_of(value.items[each]) for key, each in keys.items()} if is_one_of else {}
    key = machine.choose(index.key, dict.fromkeys(options), places)
    return value.items[keys[key]] if key in keys else None


def is_table(machine: Machine, value: Mapping) -> bool:
    """Whether a dict holds the commands of a program: functions of its own, one of which trains or evaluates."""
    functions = [each.function if isinstance(each, Bound) else each for each in value.items.values()]
    own = [each for each in functions if isinstance(each, Function)]
    return 0 < len(own) == len(functions) and any(machine.sources.is_command(each.file, each.node) for each in own)


def _are_presets(value: Mapping) -> bool:
    """Whether a dict holds options by the name of what they are for."""
    held = [each for each in value.items.values() if isinstance(each, Mapping)]
    return len(held) == len(value.items) and all(isinstance(key, str) for each in held for key in each.items)


def _place_of(choice: Value) -> Test | None:
    """Where a command or a preset is written."""
    function = choice.function if isinstance(choice, Bound) else choice
    site = function.name_site() if isinstance(function, Function) else getattr(choice, "site", None)
    return site[:3] if site is not None else None


def _entry(machine: Machine, value: Mapping, name: str, given: Arguments) -> Value:
    key, default = given.get(0, "key"), given.get(1, "default") or NONE
    if not isinstance(key, Constant):
        usual = written(key) if name == "get" and key is not None else None
        known = (usual is not None and usual.value in value.items) or (name == "get" and is_table(machine, value))
        return (chosen(machine, value, key) if key is not None and known else None) or Unknown()
    try:
        found = value.items.get(key.value)
    except TypeError:
        return Unknown()
    if found is not None:
        if name == "pop":
            del value.items[key.value]
        return found
    if value.more:
        entry = Unknown(("entry", key.value) if isinstance(key.value, str) else None)
        entry.loaded = (value.loaded, key.value) if value.loaded is not None else None
        return entry
    if name == "setdefault":
        value.items[key.value] = default
    return default


_TEXT = frozenset(
    [
        "startswith",
        "endswith",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "split",
        "replace",
        "format",
        "join",
        "title",
        "capitalize",
    ]
)


def constant_method(machine: Machine, value: Constant, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a text or number."""
    if not isinstance(value.value, str):
        return Unknown(None, value.traits, plain=True)
    if name == "join" and given.positional and isinstance(given.positional[0], Sequence):
        parts = given.positional[0]
        if not parts.more and all(isinstance(each, Constant) and isinstance(each.value, str) for each in parts.items):
            return Constant(value.value.join(each.value for each in parts.items if isinstance(each, Constant)))
        return Unknown(None, traits_of(*parts.items) - ARRAYS, plain=True)
    values = [*given.positional, *given.keywords.values()]
    if name in _TEXT and given.exact and all(isinstance(each, Constant) for each in values):
        try:
            result = getattr(value.value, name)(
                *[each.value for each in given.positional if isinstance(each, Constant)],
                **{key: each.value for key, each in given.keywords.items() if isinstance(each, Constant)},
            )
        except Exception:
            return Unknown()
        if isinstance(result, list):
            return Sequence([Constant(each) for each in result])
        return Constant(result, traits_of(value, *values)) if len(str(result)) < 10_000 else Unknown(plain=True)
    keys = tuple(each.key for each in values)
    if name == "format" and None in keys:  # what is around the parts is known
        site = machine.site(node)
        made = (site, machine.serial(site))
        keys = tuple(("part", *made, place) if key is None else key for place, key in enumerate(keys))
    key = ("text", value.value, name, *keys) if None not in keys else None
    return Unknown(key, traits_of(value, *values) - ARRAYS, plain=name in _TEXT)
