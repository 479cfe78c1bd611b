from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.checks.data.splits.index_map_per_split.origins import call_at, given_apart, hangs_on
from lightlint.checks.data.splits.index_map_per_split.targets import numbers_targets
from lightlint.engine.events import AttributeSet, Backward, BatchDrawn
from lightlint.finding import Tier
from lightlint.values.core import Class, Function, Mapping, Sequence, Unknown, number_of
from lightlint.values.training import Instance, Loader

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value

_SPECIAL = re.compile(r"[<\[]\|?(?:unk\w*|pad\w*|oov|bos|eos|sos|mask|s|go)\|?[>\]]|UNK|PAD|unk|pad", re.IGNORECASE)
_NAMES = re.compile(
    r"vocab|stoi|(?:word|char|token|symbol|term|item)\w*(?:id|idx|index|ix|indices)s?$|lexicon", re.IGNORECASE
)
_COUNTS = re.compile(
    r"\bCounter\(|most_common|\bset\(|defaultdict\(int\)|\.setdefault\(| not in \w|fromkeys\(|\.unique\(|\{[^{}:]+ for [^{}:]+ in "
)
"""What code holds that makes a vocabulary of texts; one that is read from a file is the same for all."""
_TO_INDEX = re.compile(r"(?:2|_to_)(?:id|idx|index|ix|int)s?$")
_OF_LABELS = re.compile(r"label|class|tag|target|categor", re.IGNORECASE)


class IndexMapPerSplit(Check):
    def wants_users(self) -> tuple[str, ...]:
        """Where a data set of this file may number its words: who loads it tells what it evaluates with."""
        return ("DataLoader",) if _COUNTS.search(self.facts.source.text) else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Data sets of one class for training and for evaluation, each of which numbers the words of its own texts."""
        found: dict[Site, Fault] = {}
        right: set[Site] = set()
        for path in entry.paths:
            trained = {turn.loop.over for event in path.of(Backward) for turn in event.where.turns}
            loaders = list(dict.fromkeys(event.loader for event in path.of(BatchDrawn)))
            mine = [each for loader in loaders if loader in trained and (each := _data_of(loader)) is not None]
            others = [each for loader in loaders if loader not in trained and (each := _data_of(loader)) is not None]
            for data in mine:
                for other in others:
                    for name, site, fault in _numbered_apart(path, data, other):
                        if not _COUNTS.search(self.facts.project.text(FilePath(site[0]))):
                            continue
                        if fault is None or not self._differs(data, other, name):
                            right.add(site)
                        else:
                            found.setdefault(site, fault)
        yield from (fault for site, fault in found.items() if site not in right)

    def _differs(self, data: Instance, other: Instance, name: str) -> bool:
        """Whether what the data sets were given differently goes into an attribute: both may number one file's words."""
        init = data.cls.find("__init__") if isinstance(data.cls, Class) else None
        node = init.node if isinstance(init, Function) else None
        calls = [self._call(each.site) for each in (data, other)]
        if not isinstance(node, ast.FunctionDef) or calls[0] is None or calls[1] is None:
            return True
        apart = given_apart(node, calls[0], calls[1])
        return apart is None or hangs_on(node, apart, name)

    def _call(self, site: Site | None) -> ast.Call | None:
        return call_at(self.facts.project.text(FilePath(site[0])), site) if site is not None else None


def _data_of(loader: Loader) -> Instance | None:
    data = loader.data
    own = isinstance(data, Instance) and isinstance(data.cls, Class) and not data.escaped
    return data if own and isinstance(data, Instance) else None


def _numbered_apart(path: Path, data: Instance, other: Instance) -> Iterator[tuple[str, Site, Fault | None]]:
    """Which attribute of a data set is its dict, and where it is given that, with the fault if that is another one than the first data set's."""
    if data is other or data.cls is not other.cls or data.arguments.get("dataset") is not None:
        return
    for name, value in data.attributes.items():
        theirs = other.attributes.get(name)
        first, second = _map_in(name, value, data), _map_in(name, theirs, data)
        what = "words"
        if first is None and second is None and isinstance(value, Mapping) and isinstance(theirs, Mapping):
            classes = _numbers_as_they_come(value) and value is not theirs and numbers_targets(path, data, value)
            first, second, what = (value, theirs, "classes") if classes else (None, None, "")
        if first is None or second is None or _is_of_the_same(first, second):
            continue
        set_at = [each.site for each in path.of(AttributeSet) if each.object is other and each.name == name]
        if set_at:
            also = () if other.site is None else (other.site,)
            message = f"each data set numbers its own {what} in `{name}`: the model is evaluated with other numbers than it was trained with"
            yield (
                name,
                set_at[-1],
                Fault(set_at[-1], message, None if what == "words" else Tier.WARNING, also)
                if first is not second
                else None,
            )


def _map_in(name: str, value: Value | None, data: Instance, depth: int = 0) -> Value | None:
    """A dict that numbers words, as an attribute or in the object that is one; what torchtext makes of them."""
    if isinstance(value, Mapping):
        return value if value.more and (_numbers(name, value) or _is_asked_for_each(name, value, data)) else None
    if isinstance(value, Instance) and isinstance(value.cls, Class) and value.kind == "object" and depth < 2:
        held = (_map_in(f"{name}_{key}", each, data, depth + 1) for key, each in value.attributes.items())
        return next((each for each in held if each is not None), None)
    return None


def _numbers_as_they_come(value: Mapping) -> bool:
    """Whether a dict of running numbers gives them to the different ones of a list in the order in which these come."""
    over = value.made_over
    rows = over.made_over if isinstance(over, Mapping) else None
    return value.more and _counts(value) and isinstance(rows, Sequence) and rows.more and not rows.sorted


def _is_of_the_same(first: Value, second: Value) -> bool:
    """Whether two dicts number the parts of one thing, as all letters or the lines of one file."""
    over = [each.made_over if isinstance(each, Mapping) else None for each in (first, second)]
    if first is second or over[0] is None or over[1] is None:
        return False
    read = [each.arguments.get("file") if isinstance(each, Instance) else each for each in over]
    keys = [each.key if each is not None else None for each in read]
    return keys[0] is not None and keys[0] == keys[1]


def _is_asked_for_each(name: str, value: Mapping, data: Instance) -> bool:
    """Whether a dict of running numbers is asked in a loop, for each part of a sample: what a label is numbered by is not."""
    if not _counts(value) or _OF_LABELS.search(name) or not isinstance(data.cls, Class):
        return False
    methods = (each for each in data.cls.node.body if isinstance(each, ast.FunctionDef))
    reading = (each for each in methods if each.name not in ("__init__", "__len__"))
    loops = (node for each in reading for node in ast.walk(each) if isinstance(node, _LOOPS))
    asked = (
        node.value for loop in loops for node in ast.walk(loop) if isinstance(node, (ast.Subscript, ast.Attribute))
    )
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in asked)


_LOOPS = (ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)


def _counts(value: Mapping) -> bool:
    """Whether the values of a dict are running numbers."""
    return bool(value.items) and all(
        number_of(each) is not None or (isinstance(each, Unknown) and "index" in each.traits)
        for each in value.items.values()
    )


def _numbers(name: str, value: Mapping) -> bool:
    special = any(isinstance(key, str) and _SPECIAL.fullmatch(key) for key in value.items)
    named = _NAMES.search(name) or (_TO_INDEX.search(name) and not _OF_LABELS.search(name))
    return _counts(value) and (special or bool(named))
