"""Whether any file of a project calls, names or sets an attribute: what silences rules about methods that nobody calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary

from lightlint.facts.project.glimpse import bytes_at
from lightlint.facts.project.project import Project
from lightlint.memo.looked import looked
from lightlint.sources.source import Source

_FILES: WeakKeyDictionary[Project, dict[tuple[str, str], list[Path]]] = WeakKeyDictionary()


def is_called(project: Project, source: Source, name: str) -> bool:
    """Whether some code calls a method of this name otherwise than through `super()`, hands it on, or has the name in quotes."""
    word = re.escape(name)
    return _occurs(project, source, name, rf"(?<!super\(\))\.{word}\s*[(,)\]}}\n]|['\"]{word}\\?['\"]")


def is_called_elsewhere(project: Project, source: Source, name: str) -> bool:
    """Whether another file calls a method of this name."""
    return occurs(project, name, rf"(?<!super\(\))\.{re.escape(name)}\s*\(", Path(source.filename).absolute())


def is_called_with_arguments(project: Project, source: Source, name: str) -> bool:
    """Whether some code passes arguments by position to a method of this name, otherwise than through `super()`, or hands it on."""
    called = r"\(\s*(?!\w+\s*=)[^)\s]|\s*[,)\]}\n]"
    return _occurs(project, source, name, rf"(?<!super\(\))\.{re.escape(name)}(?:{called})")


def is_mentioned(project: Project, source: Source, name: str) -> bool:
    """Whether a name stands anywhere but behind `def` and `super().`."""
    return _occurs(project, source, name, rf"(?<!def )(?<!super\(\)\.)\b{re.escape(name)}\b")


def is_made(project: Project, source: Source, name: str) -> bool:
    """Whether some code calls a class of this name."""
    return _occurs(project, source, name, rf"(?<!class )\b{re.escape(name)}\(")


def is_imported(project: Project, source: Source, package: str) -> bool:
    """Whether a file imports a package."""
    return _occurs(project, source, package, rf"(?m)^[ \t]*(?:import|from) +{package}\b")


def is_mentioned_elsewhere(project: Project, source: Source, name: str) -> bool:
    """Whether a name stands in another file of the project."""
    return occurs(project, name, rf"\b{re.escape(name)}\b", Path(source.filename).absolute())


def has_no_step_for(project: Project, source: Source, phase: str) -> bool:
    """Whether a project has a training step, and none for a phase in which Lightning evaluates: it leaves that out then."""
    step = {"val": "validation_step", "test": "test_step"}.get(phase)
    trains = _occurs(project, source, "training_step", r"\bdef training_step\b")
    return step is not None and trains and not _occurs(project, source, step, rf"\b{step}\b")


def is_set(project: Project, source: Source, name: str) -> bool:
    """Whether some code assigns to an attribute of this name, or has the name in quotes, but as the last argument: that
    reads it, as in `getattr(x, "name")`."""
    word = re.escape(name)
    quoted = rf"['\"]{word}\\?['\"]"
    return _occurs(project, source, name, rf"\.{word}\s*(?::[^=\n]+)?=(?!=)|\(\s*{quoted}|{quoted}(?!\s*\))")


def is_field(project: Project, source: Source, name: str) -> bool:
    """Whether a line of some code gives a name a value, as the body of a class does: of an heir, perhaps in another file."""
    return _occurs(project, source, name, rf"(?m)^[ \t]+{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=)")


def is_changed_elsewhere(project: Project, source: Source, name: str) -> bool:
    """Whether another file gives an attribute of this name a value, or changes what it holds: a callback, a subclass, a script."""
    return occurs(project, name, _changes(re.escape(name)), Path(source.filename).absolute())


def is_changed_outside(project: Project, name: str, owner: str, file: str) -> bool:
    """As `is_changed_elsewhere`, for an attribute of a class that is called `owner` and stands in a file: `self.name` is
    another class's in a file that does not name that one."""
    others = _changes(re.escape(name), of="(?<!self)")
    return any(occurs(project, *each, Path(file)) for each in ((name, others), (owner, _changes(re.escape(name)))))


def _changes(word: str, of: str = "") -> str:
    """Where an attribute is given a value, or what it holds is changed."""
    changes = "clear|reset|pop|update|append|extend|copy_|add_|zero_|fill_"
    forms = (
        rf"{of}\.{word}(?:\[[^\]\n]*\]|\.data)*\s*(?::[^=\n]+|[-+*/])?=(?!=)",
        rf"{of}\.{word}(?:\[[^\]\n]*\])*\.(?:{changes})\s*\(",
        rf"\bdel\s+[\w.]+\.{word}\b",
        rf"setattr\([^\n]*['\"]{word}\\?['\"]",
    )
    return "|".join(forms)


def moves_default_device(project: Project, source: Source) -> bool:
    """Whether some code of a project sets on which device tensors are made that are told none."""
    words = {
        "set_default_": r"set_default_(?:device\s*\(|tensor_type\s*\([^\n]*cuda)",
        "with ": r"\bwith\s+(?:torch\.)?device\s*\(",
    }
    return any(_occurs(project, source, word, pattern) for word, pattern in words.items())


def moves_by_no_name(project: Project, source: Source) -> bool:
    """Whether some code of a project moves what objects hold without naming it: `setattr(module, name, value.to(device))`."""
    moved = r"(\w+) *=[^=\n]*\.(?:to|cuda)\([^\n]*\n[^\n]*setattr\( *[\w.]+, *[\w.]+, *\1\b"  # on the line before
    return _occurs(project, source, "setattr", rf"setattr\([^\n]*\.(?:to|cuda)\(|{moved}")


def runs_on_cpu_alone(project: Project, source: Source) -> bool:
    """Whether no code of a project speaks of a device, or of what may choose one."""
    words = r"(?i)cuda|device|\bgpus?\b|\bmps\b|\bxpu\b|\.to\(|accelerat|trainer|lightning|fabric|\.fit\(|deepspeed"
    return not _occurs(project, source, "", words)


def prepares_samples(project: Project, source: Source, name: str) -> bool:
    """Whether objects of a class are made where samples are transformed, one by one: data sets do so on the CPU."""
    word = re.escape(name)
    among = rf"(?i:compose|transforms?|augment\w*|preproc\w*|collate\w*)['\"]?\s*[=(:][^#=]{{0,300}}?\b{word}\s*\("
    in_data_set = rf"class\s+\w+\([^)\n]*Data(?:set|Module)\)(?:(?!\nclass\s)[\s\S])*?\b{word}\s*\("
    return _occurs(project, source, name, rf"{among}|{in_data_set}")


def reseeds_each_epoch(project: Project, source: Source) -> bool:
    """Whether some code of a project seeds a generator by the epoch, from which its workers then start."""
    told = r"seed(?:_everything)?\([^\n]*epoch|epoch[^\n]*\n[^\n]*seed(?:_everything)?\(|\.seed\b[^\n]*\n[^\n]*epoch"
    return _occurs(project, source, "seed", told)


def draws_nothing(project: Project, source: Source, data_set: str) -> bool:
    """Whether the class of a data set stands in the project, below torch's alone, and speaks of nothing that may be drawn."""
    head = rf"\bclass {re.escape(data_set)}\((?:[\w.]*\.)?(?:Iterable)?Dataset(?:\[[^\n]*\])?\):"
    drawing = "rand|transform|augment|crop|noise|flip|shuffle|sampl|choice|permut|jitter|mask|drop|mix|perturb|seed"
    draws = rf"{head}(?:(?!\n(?:class|def)\s)[\s\S])*?(?i:{drawing})"
    return _occurs(project, source, data_set, head) and not _occurs(project, source, data_set, draws)


def runs_where_processes_spawn(project: Project, source: Source, *, on_cuda: bool = False) -> bool:
    """Whether a file knows Windows or macOS, where worker processes start by spawn, or its project plainly runs there.

    NCCL has no build for either, and what is installed for CUDA (`on_cuda`) none for macOS.
    """
    if _NCCL.search(source.text):
        return False
    if _NAMES_PLATFORM.search(source.text):
        return True
    told = {word: pattern for word, pattern in _SPAWNING.items() if not (on_cuda and word == "mps")}
    spawns = any(_occurs(project, source, word, pattern) for word, pattern in told.items())
    return spawns and not project.is_for_linux_alone()  # its author's own paths are of another machine then


_NAMES_PLATFORM = re.compile(r"['\"](?:win(?:32|64|dows)?|Windows|[Dd]arwin)['\"]|\bos\.name\b|\bfreeze_support\(")
_NCCL = re.compile(r"['\"]nccl['\"]")
_SPAWNING = {
    "mps": r"['\"]mps[:'\"]|\bbackends\.mps\b|\btorch\.mps\b",
    "Operating System ::": "Operating System :: (?:Microsoft|MacOS)",
    ":\\": r"(?m)^[^#\n]*['\"][A-Z]:\\",
    ":/": r"(?m)^[^#\n]*['\"][A-Z]:/",
}


def may_be_filled_elsewhere(project: Project, source: Source, name: str | None) -> bool:
    """Whether code of another file may give parameters of a module their values: this one by its name, or all in a loop or by `apply`."""
    aside = Path(source.filename).absolute()
    if name is not None and occurs(project, name, _written(re.escape(name)), aside):
        return True
    return any(occurs(project, word, pattern, aside) for word, pattern in _FILLING_ALL.items())


_FILLS = r"(?:\binit\w*\.\w+\(|\.(?:uniform|normal|fill|zero|copy|constant|xavier\w*|kaiming\w*|trunc_normal|orthogonal)_\(|\.data\b[^\n]*=(?!=))"
_LOOP = r"for\s[^\n]*\.(?:named_)?{}\([^\n]*\n(?:[^\n]*\n){{0,12}}?[^\n]*" + _FILLS
_FILLING_ALL = {
    "parameters(": _LOOP.format("parameters"),
    "modules(": _LOOP.format("modules"),
    ".apply(": r"\.apply\(\s*[\w.]*(?:init|reset|weight)",
    "reset_parameters(": r"(?<!self)(?<!super\(\))\.reset_parameters\(",
    "init_weights(": r"(?<!self)(?<!super\(\))\.init_weights\(",
}


def _written(word: str) -> str:
    """Where an attribute is given a value, filled in place, handed to what may fill it, or named in a text."""
    item = r"(?:\.data|\[[^\]\n]*\])*"
    forms = (
        rf"\.{word}{item}\s*(?::[^=\n]+)?=(?!=)",
        rf"\.{word}{item}\.\w+_\(",
        rf"[(,]\s*[\w.]+\.{word}{item}\s*[,)]",
        rf"\bin\s+[\w.]+\.{word}\b",
        rf"['\"]{word}['\"]",
    )
    return "|".join(forms)


def _occurs(project: Project, source: Source, name: str, pattern: str) -> bool:
    """Whether a pattern is found in the file at hand or, as last written, in another of the project."""
    if re.search(pattern, source.text):
        return True
    return occurs(project, name, pattern, Path(source.filename).absolute())


def occurs(project: Project, name: str, pattern: str, aside: Path | None = None) -> bool:
    """Whether a pattern with a name in it is found in a file of the project, one left aside."""
    question = ("occurs", name, pattern, *([str(aside)] if aside is not None else []))
    project.asked.add(question)
    known = _FILES.setdefault(project, {})
    if (name, pattern) not in known:  # two files tell it of all, whichever is left aside
        known[name, pattern] = [*islice(_files_with(project, name.encode(), re.compile(pattern.encode())), 2)]
    return any(path != aside for path in known[name, pattern])


def _files_with(project: Project, word: bytes, pattern: re.Pattern[bytes]) -> Iterator[Path]:
    for path in project.files:
        looked(path)
        if occurs_in(bytes_at(path), word, pattern):
            yield path


def occurs_in(data: bytes, word: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether a pattern with a word in it is found in a file."""
    return word in data and pattern.search(data) is not None
