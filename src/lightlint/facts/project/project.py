"""The files around a file: finds modules by name and reads summaries of them on demand."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from pathlib import Path

from lightlint.facts.data.files import settings_in
from lightlint.facts.data.launches import is_launched_on_nodes, is_launched_with_engine
from lightlint.facts.data.started import Documents
from lightlint.facts.project.configs import Configs
from lightlint.facts.project.glimpse import INDEXED, bytes_at, glimpse, import_words, indexed
from lightlint.facts.project.roots import root_of
from lightlint.facts.project.summary import CallSummary, ClassSummary, ModuleSummary, summarise
from lightlint.memo.looked import looked
from lightlint.sources.discover import discover
from lightlint.sources.load import load
from lightlint.sources.source import UnreadableError
from lightlint.text import registers

_HOPS = 8
_MOST_TEXT = 4_000_000  # characters of files that are kept


Question = tuple[str, ...]
"""What a file's findings asked of its project: a kind, then what `questions.Answers` takes for it."""


class Projects:
    """The projects of one run, by root directory."""

    def __init__(self) -> None:
        self._by_root: dict[Path, Project] = {}

    def of(self, path: Path) -> Project:
        """The project a file belongs to."""
        return self.at(root_of(path.parent))

    def at(self, root: Path) -> Project:
        """The project at a root."""
        if root not in self._by_root:
            self._by_root[root] = Project(root)
        return self._by_root[root]

    def glimpses(self) -> dict[str, str]:
        """What their indices know of files, by path."""
        return {path: found for project in self._by_root.values() for path, found in project.glimpses().items()}

    def asked(self) -> frozenset[Question]:
        """What was asked of them since the last call."""
        found = frozenset[Question]().union(*(project.asked for project in self._by_root.values()))
        for project in self._by_root.values():
            project.asked = set()
        return found


class Project:
    """Knows the modules under one root. Nothing is read before it is asked for, and nothing twice."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: set[Question] = set()
        self._summaries: dict[Path, ModuleSummary] = {}
        self._modules: dict[tuple[str, Path], Path | None] = {}
        self._texts: OrderedDict[Path, str] = OrderedDict()  # those that were asked for last
        self._size = 0  # of these
        self._registers: dict[Path, bool] = {}
        self._on_nodes: dict[Path, bool | None] = {}
        self._listings: dict[Path, frozenset[str]] = {}
        self._words: dict[Path, frozenset[str]] = {}
        self._offered: dict[Path, tuple[frozenset[str], frozenset[Question]]] = {}
        self._led_to: dict[tuple[str, Path], tuple[frozenset[Path], frozenset[Question]]] = {}

    def module_name(self, path: Path) -> str:
        """The dotted name a file is imported under, counted from where its packages start."""
        self.asked.add(("name", str(path)))
        parts = [] if path.stem == "__init__" else [path.stem]
        folder = path.parent
        while "__init__.py" in self._listed(folder) and folder.parent != folder:
            parts.append(folder.name)
            folder = folder.parent
        return ".".join(reversed(parts))

    def package_name(self, path: Path) -> str:
        """The package that a file's relative imports start from."""
        name = self.module_name(path)
        return name if path.stem == "__init__" else name.rpartition(".")[0]

    def summary(self, path: Path) -> ModuleSummary:
        """What others may know of a file; empty for one that cannot be read."""
        self.asked.add(("summary", str(path)))
        if path not in self._summaries:
            try:
                text = load(path).text
            except UnreadableError:
                text = ""
            self._summaries[path] = summarise(text, self.module_name(path), self.package_name(path))
        return self._summaries[path]

    def find_module(self, dotted: str, near: Path) -> Path | None:
        """The file of a module, as seen from the directory `near`; None for one outside the project."""
        self.asked.add(("module", dotted, str(near)))
        key = (dotted, near)
        if key not in self._modules:
            self._modules[key] = next(self._candidates(dotted, near), None)
        return self._modules[key]

    def _candidates(self, dotted: str, near: Path) -> Iterator[Path]:
        parts = dotted.strip(".").split(".")
        relative = Path(*parts)
        tops = [near]
        while "__init__.py" in self._listed(tops[-1]) and tops[-1].parent != tops[-1]:
            tops.append(tops[-1].parent)
        # Python looks where the packages start; a script may be started from any folder inside them. A file in `serve/`
        # that imports `serve.model` is run from the folder above, be there an `__init__.py` or not
        above = [each.parent for each in (near, *near.parents) if each.name == parts[0]]
        for top in dict.fromkeys([*reversed(tops), self.root, self.root / "src", *above[:1]]):
            if self._listed(top).isdisjoint((parts[0], parts[0] + ".py")):
                continue
            for candidate in (top / relative.with_suffix(".py"), top / relative / "__init__.py"):
                looked(candidate)
                if candidate.is_file():
                    yield candidate

    def text_defining(self, dotted: str, near: Path) -> str:
        """The text of the project's file that defines a class or function, empty for one that is not in sight."""
        known = self.find_class(dotted, near)
        path = known[1] if known else self.find_module(dotted.rpartition(".")[0], near) if "." in dotted else None
        return self.text(path) if path is not None else ""

    def text(self, path: Path) -> str:
        """The text of a file, empty for one that cannot be read."""
        self.asked.add(("text", str(path)))
        return self._text(path)

    def has(self, path: Path, text: str) -> bool:
        """Whether a text of a file is the one that other files are told of."""
        return self._text(path) == text

    def registers(self, path: Path) -> bool:
        """Whether running a file may do more than to give its names their values: whoever imports it asks, few run it."""
        self.asked.add(("registers", str(path)))
        if path not in self._registers:
            self._registers[path] = registers(self._text(path))
        return self._registers[path]

    def _text(self, path: Path) -> str:
        text = self._texts.pop(path, None)
        if text is None:
            try:
                text = load(path).text
            except UnreadableError:
                text = ""
            self._size += len(text)
        self._texts[path] = text
        while self._size > _MOST_TEXT and len(self._texts) > 1:
            self._size -= len(self._texts.popitem(last=False)[1])
        return text

    def _listed(self, folder: Path) -> frozenset[str]:
        """The names in a folder: most imports name no file of the project, which one listing tells."""
        if folder not in self._listings:
            looked(folder)
            try:
                self._listings[folder] = frozenset(each.name for each in folder.iterdir())
            except OSError:
                self._listings[folder] = frozenset()
        return self._listings[folder]

    def find_class(self, dotted: str, near: Path) -> tuple[ClassSummary, Path] | None:
        """The class a canonical name stands for and the file that defines it, through re-exports."""
        for summary, name, path in self._trail(dotted, near):
            if name in summary.classes:
                return summary.classes[name], path
        return None

    def find_function(self, dotted: str, near: Path) -> Path | None:
        """The file of the project that defines the function a canonical name stands for, through re-exports."""
        for summary, name, path in self._trail(dotted, near):
            if name not in summary.classes and summary.exports.get(name) == f"{self.module_name(path)}.{name}":
                return path
        return None

    def _trail(self, dotted: str, near: Path) -> Iterator[tuple[ModuleSummary, str, Path]]:
        """The modules that a canonical name leads through, each with the name it goes by there."""
        for _ in range(_HOPS):
            module, _, name = dotted.rpartition(".")
            path = self.find_module(module, near) if module else None
            if path is None:
                return
            summary = self.summary(path)
            yield summary, name, path
            following = summary.exports.get(name)
            if following is None:
                following = next((f"{star}.{name}" for star in summary.stars if self._offers(star, name, path)), None)
            if following is None or following == dotted:
                return
            dotted, near = following, path.parent

    def _offers(self, module: str, name: str, importer: Path) -> bool:
        """Whether a module has a name, of its own or by what it imports everything of."""
        path = self.find_module(module, importer.parent)
        return path is not None and name in self._offered_by(path)

    def _offered_by(self, path: Path) -> frozenset[str]:
        """The names of a file and of those it imports everything of, directly or not."""
        if path not in self._offered:
            before, self.asked = self.asked, set()
            found, latest = {path: None}, [path]
            for _ in range(_HOPS - 1):
                stars = [self.find_module(star, each.parent) for each in latest for star in self.summary(each).stars]
                latest = [each for each in dict.fromkeys(stars) if each is not None and each not in found]
                found.update(dict.fromkeys(latest))
            summaries = [self.summary(each) for each in found]
            names = frozenset(name for each in summaries for name in (*each.classes, *each.exports))
            self._offered[path] = names, frozenset(self.asked)
            self.asked = before
        names, asked = self._offered[path]
        self.asked |= asked
        return names

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Every Python file and notebook under the root."""
        found, _ = discover([str(self.root)], exclude=())
        return tuple(found)

    def settings(self, name: str, folder: Path) -> tuple[Path, object] | None:
        """The file of settings that a program in a folder opens by a name, and what it says; None where none is in sight."""
        self.asked.add(("settings", name, str(folder)))
        return settings_in(name, folder, self.root)

    def has_engine(self, folder: Path) -> bool:
        """Whether what stands in a folder is launched with an engine that shards what is trained."""
        self.asked.add(("engine", str(folder)))
        return is_launched_with_engine(folder)

    def is_on_nodes(self, folder: Path) -> bool | None:
        """Whether what stands in a folder is launched on several nodes; None where nothing says it."""
        self.asked.add(("nodes", str(folder)))
        if folder not in self._on_nodes:
            self._on_nodes[folder] = is_launched_on_nodes(folder, self.root)
        return self._on_nodes[folder]

    def is_run_alone(self, program: Path) -> bool:
        """Whether scripts and pages start a program as one process only, or all programs of the project where none names it."""
        self.asked.add(("alone", str(program)))
        return self._documents.starts_alone(program)

    def is_for_linux_alone(self) -> bool:
        """Whether scripts and pages say that it runs on Linux only."""
        self.asked.add(("linux",))
        return self._documents.name_linux_alone

    @cached_property
    def _documents(self) -> Documents:
        return Documents(self.root)

    def gives(self, cls: str, name: str) -> bool:
        """Whether settings of the project say what an argument of a class is, where its code makes what they name."""
        return bool(self.mentioning("instantiate", "LightningCLI")) and name in self.configs.given.get(cls, ())

    @property
    def configs(self) -> Configs:
        """The YAML files under the root."""
        self.asked.add(("configs",))
        return self._configs

    @cached_property
    def _configs(self) -> Configs:
        return Configs(self.root)

    def mentioning(self, *words: str) -> tuple[Path, ...]:
        """The project's files whose bytes hold one of some words: the cheap question before a summary."""
        self.asked.update(("mentioning", word) for word in words)
        return self._mentioning(words)

    def _mentioning(self, words: Iterable[str]) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path for word in words for path in self._word_index[word]))

    @cached_property
    def _word_index(self) -> dict[str, list[Path]]:
        index: dict[str, list[Path]] = {word: [] for word in INDEXED}
        for path in self.files:
            looked(path)
            for word in indexed(bytes_at(path)):
                index[word].append(path)
        return index

    def glimpses(self) -> dict[str, str]:
        """What the index knows of the files that it knows anything of, as `glimpse`; empty where nobody has asked it."""
        if "_word_index" not in self.__dict__:
            return {}
        words: dict[Path, list[str]] = defaultdict(list)
        for word, paths in self._word_index.items():
            for path in paths:
                words[path].append(word)
        return {str(path): glimpse(held, self._import_words(path)) for path, held in words.items()}

    def importers(self, module: str, candidates: Sequence[Path]) -> tuple[Path, ...]:
        """Those of some files that import a module or something from it."""
        prefix = module + "."
        return tuple(
            path
            for path in candidates
            if any(name == module or name.startswith(prefix) for name in self.summary(path).imported)
        )

    def users(self, path: Path, *words: str) -> tuple[Path, ...]:
        """The files that hold one of some words and import from the file at `path`, directly or through a re-export."""
        wanted = self._importable(path)
        candidates = [each for each in self.importing(words, wanted) if each != path]
        return tuple(
            each for each in candidates if any(path in self._sources(name, each) for name in self._named(each, wanted))
        )

    def _named(self, path: Path, wanted: Set[str]) -> Iterator[str]:
        """What a file imports that has one of some words in its name."""
        return (name for name in self.summary(path).imported if not wanted.isdisjoint(name.split(".")))

    def importing(self, words: Sequence[str], wanted: Set[str]) -> tuple[Path, ...]:
        """The files that hold one of some words and import something called one of the wanted ones."""
        self.asked.add(("importing", " ".join(words), " ".join(sorted(wanted))))
        return tuple(each for each in self._mentioning(words) if not wanted.isdisjoint(self._import_words(each)))

    def _importable(self, path: Path) -> frozenset[str]:
        """The words one of which every import from a file, direct or through a re-export, has in it."""
        own = {path.parent.name if path.stem == "__init__" else path.stem}
        return frozenset({*own, *self.summary(path).classes, "*"})

    def _import_words(self, path: Path) -> frozenset[str]:
        """The words of a file's import statements, read off the text: the cheap question before its summary."""
        if path not in self._words:
            self._words[path] = import_words(bytes_at(path))
        return self._words[path]

    def imports_one_with(self, path: Path, word: str) -> bool:
        """Whether a file imports from a file of the project that holds a word of the index."""
        return bool(self.imported_with(path, word))

    def imported_with(self, path: Path, word: str) -> tuple[Path, ...]:
        """The files of the project that hold a word of the index, and that a file imports from."""
        holding = self.mentioning(word)
        sources = self.sources_of(path)
        return tuple(each for each in holding if each in sources)

    def sources_of(self, path: Path) -> frozenset[Path]:
        """The files of the project that a file imports from."""
        return frozenset(source for name in self.summary(path).imported for source in self._sources(name, path))

    def imports_through(self, path: Path, package: str) -> bool:
        """Whether a file imports a package, itself or through the project's files that it imports."""
        seen, left = {path}, [path]
        while left:
            importer = left.pop()
            names = self.summary(importer).imported
            if any(name.partition(".")[0] == package for name in names):
                return True
            new = {source for name in names for source in self._sources(name, importer)} - seen
            seen |= new
            left += new
        return False

    def _sources(self, name: str, importer: Path) -> frozenset[Path]:
        """The project's files that an imported name leads to: its module, and the one that defines it."""
        key = name, importer.parent
        if key not in self._led_to:
            before, self.asked = self.asked, set()
            modules = [self.find_module(each, importer.parent) for each in (name, name.rpartition(".")[0]) if each]
            known = self.find_class(name, importer.parent)
            found = [*modules, known[1] if known else None]
            self._led_to[key] = frozenset(each for each in found if each is not None), frozenset(self.asked)
            self.asked = before
        sources, asked = self._led_to[key]
        self.asked |= asked
        return sources

    def calls(self, path: Path, *names: str) -> tuple[CallSummary, ...]:
        """The noted calls of some canonical names in one file."""
        return tuple(call for call in self.summary(path).calls if call.name in names)
