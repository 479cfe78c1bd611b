"""The rehearsals of a file, and the places of what they find in its text."""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lightlint.facts.data.starters import starts_training
from lightlint.facts.project.project import Project, Question
from lightlint.facts.project.roots import root_of
from lightlint.sources.source import Source
from lightlint.syntax import tree_of, walked
from lightlint.text import TRAINS, words_of

if TYPE_CHECKING:
    from lightlint.engine.events import E, Where
    from lightlint.explore.parsed import Kept, Parsed
    from lightlint.explore.rehearsals import Entry, Rehearsals
    from lightlint.explore.rehearsals import Path as Rehearsal
    from lightlint.values.core import Site

_TRAINING = re.compile(
    r"backward|(?:training|validation|test)_step|fit|DataLoader|(?:cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss|BCE\w*Loss)\w*"
    r"|binary_cross_entropy\w*|kl_div|KLDivLoss|mse_loss|MSELoss|\w*l1_loss|\w*L1Loss"
    r"|lr_scheduler|\w+LR|param_groups|state_dict|barrier|all_reduce|DistributedSampler|compute"
    r"|(?:torch\.)?distributed|DistributedDataParallel|on_(?:fit|train|val|test|pred)\w+|random_split|train_test_split|load_state_dict|load|load_from_checkpoint"
    r"|\w*Trainer|\w*TrainingArguments|Fabric|Accelerator|\w*PeftModel\w*|(?:SFT|DPO|GRPO|KTO|ORPO|PPO|RLOO)Config|generate|Lightning(?:CLI|Module|DataModule)|configure_optimizers|ModelCheckpoint|EarlyStopping"
    r"|autocast|GradScaler|(?:in|out)_(?:features|channels)|num_embeddings|embedding_dim"
    r"|VecNormalize|evaluate_policy|A2C|PPO|RecurrentPPO|SAC|TD3|DDPG|DQN|TQC"
)  # the same as names, for what texts and comments tell of trains nothing
_MOST_USERS = 3
_MOST_KEPT = 16  # rehearsals: a file is asked for by itself and, mostly soon, by those that it imports from
_MOST_READ = (
    1_000_000  # characters of modules that one file's rehearsals import: a package that imports all of itself has more
)
_latest: dict[tuple[str, str], Rehearsed] = {}


class _OfProject:
    """What the rehearsals of a project's files share: modules that are parsed, and whole rehearsals with what they asked of the
    project, by file and aim."""

    def __init__(self) -> None:
        from lightlint.explore.parsed import Kept

        self.modules = Kept()
        self.rehearsals: OrderedDict[tuple[str, str], tuple[Rehearsals, frozenset[Question]]] = OrderedDict()


_shared: WeakKeyDictionary[Project, _OfProject] = WeakKeyDictionary()


class Rehearsed:
    """What a file's code does when it is rehearsed.

    Args:
        source: the file.
        path: its place.
        project: what it imports from.
    """

    def __init__(self, source: Source, path: Path, project: Project) -> None:
        self._source, self._file, self.project = source, str(path), project
        self._tree = tree_of(source.text) or ast.Module([], [])
        self.asked: set[Question] = set()  # of the project, which what is found hangs on
        self._users: dict[Path, list[Entry]] = {}
        self.entries: list[Entry] = self._rehearsals.entries if self._trains else []

    @cached_property
    def _trains(self) -> bool:
        told = any(map(_HINTS.__getitem__, self._words)) and TRAINS.search(self._source.text) is not None
        if told and _trains(self._tree):
            return True
        return starts_training(self.project, Path(self._file), self._source.text)

    @property
    def kinds(self) -> set[str]:
        """The names of the kinds of events that happen."""
        return {kind for entry in self.entries for path in entry.paths for kind in path.kinds}

    @cached_property
    def others(self) -> list[Path]:
        """The other files whose code runs when this one does."""
        paths = [path for entry in self.entries for path in entry.paths]
        files = {event.site[0] for path in paths for event in path.events}.union(
            *(path.machine.files for path in paths)
        )
        return sorted(Path(each) for each in files - {self._file, ""})

    @cached_property
    def imported(self) -> list[Path]:
        """These, and those that only give names their values: tables, settings."""
        files = {file for entry in self.entries for path in entry.paths for file in path.machine.modules}
        return sorted({*self.others, *map(Path, files - {self._file, ""})})

    def leading_to(self, site: Site) -> tuple[Site, ...]:
        """The calls that led to the function in which a place of another file lies, the innermost first."""
        around = [each for each in self._entered if each[0] == site[0] and each[1] <= site[1] <= each[2]]
        return self._entered[max(around, key=lambda each: each[1])] if around else ()

    @cached_property
    def _entered(self) -> dict[tuple[str, int, int], tuple[Site, ...]]:
        """The functions, by file and rows, in which something happens, and the calls that led to each the first time."""
        found: dict[tuple[str, int, int], tuple[Site, ...]] = {}
        for event in (event for entry in self.entries for path in entry.paths for event in path.events):
            calls = event.where.calls
            for depth, call in enumerate(calls, 1):
                node = call.function.node
                key = (call.function.file, node.lineno, node.end_lineno or node.lineno)
                if key not in found:
                    found[key] = tuple(each.site for each in reversed(calls[:depth]))
        return found

    @property
    def passes(self) -> list[Entry]:
        """The forward passes of the file's modules, in training and in evaluation mode."""
        with self._asking():
            return self._rehearsals.passes

    def rest(self, words: frozenset[str]) -> list[Entry]:
        """What the file holds besides training, as far as one of some words is in it."""
        if words.isdisjoint(self._words):
            return []
        with self._asking():
            return self._besides_training.rest(words)

    @cached_property
    def _words(self) -> frozenset[str]:
        return words_of(self._source.text)

    @cached_property
    def _besides_training(self) -> Rehearsals:
        return self._rehearsals if self._trains else self._rehearsals_of(self._file, "rest")

    def of_users(self, words: tuple[str, ...]) -> list[Entry]:
        """The rehearsals of files that hold one of some words and import from this one, for what it is given by them."""
        if root_of(Path(self._file).parent) != self.project.root:
            return []  # who lints this file finds another project, and none of them
        with self._asking():
            users = self.project.users(Path(self._file), *words)[:_MOST_USERS]
            new = [each for each in users if each not in self._users]
            self._users |= {each: self._rehearsals_of(str(each)).entries for each in new}
            return [entry for each in users for entry in self._users[each]]

    def of_other(self, path: Path) -> list[Entry]:
        """The rehearsals of another program of the project."""
        with self._asking():
            return self._rehearsals_of(str(path)).entries

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What is asked of the project inside is what the findings of this file hang on, too."""
        before, self.project.asked = self.project.asked, set()
        yield
        self.asked |= self.project.asked
        before |= self.asked
        self.project.asked = before

    @cached_property
    def _rehearsals(self) -> Rehearsals:
        return self._rehearsals_of(self._file, "training" if self._trains else "passes")

    def _rehearsals_of(self, file: str, aim: str = "training") -> Rehearsals:
        """The rehearsals of a file for an `aim`: "training", or of one that does not train "passes" or the "rest", which read no
        more of the file than they need. Those of a file that is as the project has it are kept for others that ask."""
        training = aim == "training"
        shared = _shared.setdefault(self.project, _OfProject())
        shared.modules.of(self._file, self._source.text)
        if not self.project.has(Path(self._file), self._source.text):
            return self._made_for(file, shared.modules, training=training)
        made, asked = shared.rehearsals.pop((file, aim), (None, frozenset[Question]()))
        if made is None:
            before, self.project.asked = self.project.asked, set()
            made = _rehearsals(self.project, self.project.text, shared.modules, file, training=training)
            asked, self.project.asked = frozenset(self.project.asked), before
        self.project.asked |= asked
        shared.rehearsals[file, aim] = made, asked
        if len(shared.rehearsals) > _MOST_KEPT:
            shared.rehearsals.popitem(last=False)
        return made

    def _made_for(self, file: str, modules: Kept, *, training: bool) -> Rehearsals:
        """Those of a file where this one has another text than the project has."""

        def text_of(path: Path) -> str:
            return self._source.text if str(path) == self._file else self.project.text(path)

        return _rehearsals(self.project, text_of, modules, file, training=training)

    def span(self, site: Site) -> tuple[int, int] | None:
        """The characters at a place, None for one in another file."""
        file, row, column, end_row, end_column = site
        if file != self._file or not row:
            return None
        return self._offset(row, column), self._offset(end_row, end_column)

    def nearest(self, where: Where) -> Site | None:
        """The innermost place of this file from where something happened: the place itself, or a call that led there."""
        places = (where.site, *(call.site for call in reversed(where.calls)))
        return next((each for each in places if self.span(each) is not None), None)

    def at(
        self, start: int, end: int, kind: type[E], *, passes: bool = False, entries: Iterable[Entry] | None = None
    ) -> list[tuple[Entry, Rehearsal, E]]:
        """The events of a kind at characters `start` to `end`, each with the entry and the path on which it happened: of this
        file, with its `passes`, or of some `entries`."""
        found: list[tuple[Entry, Rehearsal, E]] = []
        for entry in [*self.entries, *(self.passes if passes else [])] if entries is None else entries:
            for path in entry.paths:
                for event in path.of(kind):
                    span = self.span(event.site)
                    if span is not None and start <= span[0] and span[1] <= end:
                        found.append((entry, path, event))
        return found

    def _offset(self, row: int, column: int) -> int:
        """Of a row from 1 and a column in UTF-8 bytes."""
        starts, text = self._source.row_starts, self._source.text
        start = starts[min(row, len(starts)) - 1]
        end = starts[row] if row < len(starts) else len(text)
        line = text[start:end]
        return start + (column if line.isascii() else len(line.encode()[:column].decode(errors="ignore")))

    def around(self, row: int) -> tuple[int, int]:
        """The rows of the outermost function, or else the statement of the module, that a row stands in."""
        return _rows_around(self._tree, row)

    def lines_around(self, site: Site) -> list[str]:
        """The text of these rows, for a place in any file."""
        here = site[0] == self._file
        text = self._source.text if here else self.project.text(Path(site[0]))
        tree = self._tree if here else tree_of(text)
        first, last = _rows_around(tree, site[1]) if tree is not None else (1, 0)
        return text.splitlines()[first - 1 : last]


def _rows_around(tree: ast.Module, row: int) -> tuple[int, int]:
    for node in tree.body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if first <= row <= (node.end_lineno or node.lineno):
            for inner in node.body if isinstance(node, ast.ClassDef) else []:
                if inner.lineno <= row <= (inner.end_lineno or inner.lineno):
                    return inner.lineno, inner.end_lineno or inner.lineno
            return first, node.end_lineno or node.lineno
    return row, row


def _rehearsals(
    project: Project, text_of: Callable[[Path], str], modules: Kept, file: str, *, training: bool
) -> Rehearsals:
    from lightlint.explore.rehearsals import Rehearsals
    from lightlint.explore.sources import ProjectSources

    def text(file: str) -> str:
        return text_of(Path(file))

    left = _MOST_READ

    def read(file: str) -> Parsed | None:
        nonlocal left
        read = text(file)
        left -= len(read)
        return modules.of(file, read) if left > 0 else None

    def does_register(file: str) -> bool:
        return project.registers(Path(file))

    asking = project.settings, project.has_engine, project.gives
    sources = ProjectSources(project.find_module, read, {}, text, does_register, *asking)
    return Rehearsals(sources, file, training=training)


_NAMED: dict[type[ast.AST], str] = {ast.Name: "id", ast.Attribute: "attr", ast.FunctionDef: "name", ast.alias: "name"}


def _trains(tree: ast.Module) -> bool:
    """Whether code names anything of training, or has it looked up by its name in a text."""
    for node in walked(tree):
        held = _NAMED.get(type(node))
        if held is not None:
            names = [getattr(node, held)]
        elif isinstance(node, ast.Call):
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            names = [each.rpartition(".")[2] for each in texts]
        else:
            continue
        if any(map(_NAMES.__getitem__, names)):
            return True
    return False


class _Matching(dict[str, bool]):
    """Which words match a regular expression; those of a project's files are mostly the same."""

    def __init__(self, matches: Callable[[str], object]) -> None:
        super().__init__()
        self._matches = matches

    def __missing__(self, word: str) -> bool:
        self[word] = found = self._matches(word) is not None
        return found


_HINTS = _Matching(
    re.compile(
        r"backward$|_step|^fit$|DataLoader$|cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss|BCE\w*Loss|kl_div|KLDivLoss"
        r"|mse_loss|MSELoss|l1_loss|L1Loss|lr_scheduler|param_groups|barrier$|all_reduce$|^compute$|[Dd]istributed|^on_"
        r"|random_split|train_test_split|load_state_dict$|^load$|load_from_checkpoint$|Trainer$|TrainingArguments|Fabric$"
        r"|Accelerator$|PeftModel|Config$|^generate$|LightningCLI|^configure_optimizers|ModelCheckpoint|EarlyStopping"
        r"|torchmetrics|autocast$|GradScaler|^(?:in|out)_(?:features|channels)$|^(?:num_embeddings|embedding_dim)$|Lightning|^stable_baselines3$|^sb3_contrib$"
    ).search
)  # words of which a text that trains has one
_NAMES = _Matching(_TRAINING.fullmatch)


def rehearsed(source: Source, path: Path, project: Project) -> Rehearsed:
    """The rehearsals of a file; those of the last one are kept, for its sketch and its tree ask alike."""
    key = (str(path), source.text)
    made = _latest.get(key)
    if made is None or made.project is not project:  # another project may hold other files beside it
        before, project.asked = project.asked, set()
        made = Rehearsed(source, path, project)
        made.asked = project.asked
        project.asked = before
        _latest.clear()
        _latest[key] = made
    project.asked |= made.asked
    return made
