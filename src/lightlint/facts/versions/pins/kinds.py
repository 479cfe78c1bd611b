"""Which files say what a project installs, by their names, and what reads each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from lightlint.facts.data.launches import SHELL_SCRIPTS
from lightlint.facts.versions.pins.pin import Kind, Pin

Reader = Callable[[Path, str], Iterable[Pin]]

_EXACT = {
    "pyproject.toml": "tables:toml_pins",
    "pixi.toml": "tables:toml_pins",
    "pipfile": "tables:toml_pins",
    "pipfile.lock": "tables:json_lock_pins",
    "uv.lock": "tables:lock_pins",
    "poetry.lock": "tables:lock_pins",
    "pdm.lock": "tables:lock_pins",
    "pixi.lock": "tables:conda_lock_pins",
    ".python-version": "listed:python_version_pins",
    "runtime.txt": "listed:python_version_pins",
    "floyd.yml": "listed:floyd_pins",
    "setup.py": "python_files:setup_pins",
    "noxfile.py": "python_files:setup_pins",
    "setup.cfg": "listed:setup_cfg_pins",
    "tox.ini": "listed:tox_pins",
}
_LISTS = {".txt", ".in", ".pip", ".lock", ".list", ""}
_FOLDERS_OF_LISTS = {"requirements", "requirement", "reqs", "deps", "dependencies", "constraints"}
_FOLDERS_OF_LISTS |= {"env", "envs", "environment", "environments", "conda", "pip"}
_IS_LIST = re.compile(
    r"require?ment|reqirement|requiremnt|constraint|(?:^|[-_.])(?:reqs?|deps|dependenc(?:y|ies)|freeze|pip|conda|env|environment|spec|packages?|pkgs?|versions?|libs?|librar(?:y|ies)|modules?|installed)(?:[-_.\d]|$)"
)
_IS_CONTAINER = re.compile(
    r"(?:docker|container)file(?!.*\.(?:md|py|dockerignore|ya?ml|json|sh)$)|\.docker$|^(?:singularity|apptainer)|\.def$"
)
_IS_INSTALLER = re.compile(
    r"install|setup|set_up|env|build|docker|conda|req|dep|bootstrap|create|init|prepare|start|make|just|postbuild"
)  # others install or load ahead of what they run
_OF_CLOUD = re.compile(
    r"sagemaker|(?:^|_)sm_|azure|(?:^|_)aml|modal|estimator|launch|submit|vertex|deploy|job|remote|cloud"
)
_IS_README = re.compile(
    r"^(?:readme|install|installation|get(?:ting)?[-_]?started|requirements?|environment|setup)(?:[-_.]\w+)?(?:\.(?:md|rst|txt|markdown|adoc|org))?$"
)
_OF_OTHER_THINGS = (
    "change|history|news|release|contribut|code[-_]of|security|licen[cs]e|to-?do|roadmap|citation|authors|credits|faq"
)
_IS_PAGE = re.compile(rf"(?!{_OF_OTHER_THINGS})[\w-]+\.(?:md|rst)$")
PROSE = {".md", ".rst", ".markdown", ".adoc", ".org", ".txt", ""}
_IS_NO_TEXT = re.compile(r"\.(?:pdf|docx?|html?|tex|png|jpe?g|gif|svg|json|ya?ml|toml|cfg|ini|py|ipynb|zip|gz)$")
_IS_FORM = re.compile(  # for those who report or send something: what stands there is an example
    r"(?:issue|pull[-_ ]?request|merge[-_ ]?request|pr)[-_ ]?templates?|^(?:bug|issue)[-_ ]?report"
)
_IS_NOTE = re.compile(r"^(?:env|environment|requirements?|dependencies|packages|versions?)\.py$")
_IS_COMPOSE = re.compile(r"^(?:docker-)?compose|^cog\.ya?ml$|^devcontainer\.json$")
_CI = re.compile(r"^\.?(?:gitlab-ci|travis|azure-pipelines|appveyor|cirrus|drone|circleci)|^jenkinsfile")
_FOLDERS_OF_CI = {"workflows", ".circleci", "actions", ".azure-pipelines", "ci", ".ci"}
_OF_CI = frozenset((".circleci", ".github"))
_TESTS = {"tox.ini", "noxfile.py"}
_WEAK = {"makefile", "justfile", "postbuild"}
_LOCKED = re.compile(r"^pylock.*\.toml$|conda-lock.*\.ya?ml$|conda.*\.lock$")


def reader_of(file: Path) -> Reader | None:
    """What reads a file for pins; None for one that is not known to hold any."""
    name, folder = file.name.lower(), file.parent.name.lower()
    suffix = file.suffix.lower()
    if name in _EXACT:
        return _load(_EXACT[name])
    if _IS_FORM.search(name) or _IS_FORM.search(folder):
        return None
    if _LOCKED.search(name):
        return _load("tables:lock_pins" if suffix == ".toml" else "tables:conda_lock_pins")
    if _IS_CONTAINER.search(name):
        return _load("containers:dockerfile_pins")
    if _is_readme(name, suffix):
        return _load("prose:readme_pins")
    if suffix in _LISTS and (_IS_LIST.search(file.stem.lower()) or (folder in _FOLDERS_OF_LISTS and suffix)):
        return _load("requirement_files:requirement_pins")
    if suffix in {".yml", ".yaml"} or name == "devcontainer.json":
        return _of_yaml(name, folder)
    if suffix in PROSE and _IS_README.match(name):
        return _load("prose:readme_pins")
    if _IS_PAGE.match(name):
        return _load("prose:page_pins")
    if _CI.search(name):
        return _texts(Kind.CI)
    if _IS_NOTE.match(name):
        return _load("python_files:noted_pins")
    if suffix == ".ipynb" or (suffix == ".py" and _OF_CLOUD.search(name)):
        return _load("listed:notebook_pins" if suffix == ".ipynb" else "python_files:cloud_pins")
    if suffix in SHELL_SCRIPTS or name in _WEAK:
        return _texts(Kind.SCRIPT)
    return None


def _is_readme(name: str, suffix: str) -> bool:
    """Whether a file is a README by its name, also of one machine: `README.perlmutter`."""
    return name.startswith("readme") and suffix not in SHELL_SCRIPTS and not _IS_NO_TEXT.search(name)


def is_weak(file: Path) -> bool:
    """Whether a file tells of one way to install among others: a script, CI, a README."""
    name, suffix = file.name.lower(), file.suffix.lower()
    is_prose = suffix in PROSE and name.startswith(("install", "get")) and not name.startswith("installed")
    is_prose |= _is_readme(name, suffix)
    is_prose |= suffix in {".ipynb", ".py"} and name not in _EXACT
    return is_prose or name in _WEAK or suffix in SHELL_SCRIPTS or suffix in PROSE - _LISTS or is_of_ci(file)


def is_page(file: Path) -> bool:
    """Whether a file is a text that is no README."""
    return reader_of(file) is _load("prose:page_pins")


def is_page_of_news(file: Path) -> bool:
    """Whether a file is a text that tells of other things than what a project runs with, by its name."""
    return re.match(_OF_OTHER_THINGS, file.name.lower()) is not None


def is_read_last(file: Path) -> bool:
    """Whether a file is one of perhaps many that only run something: it must not crowd out what says what is installed."""
    if file.suffix in {".ipynb", ".py"}:
        return True
    return file.suffix.lower() in SHELL_SCRIPTS and not _IS_INSTALLER.search(file.name.lower())


def is_of_ci(file: Path) -> bool:
    """Whether a file says what continuous integration installs, often at both ends of what is supported."""
    name = file.name.lower()
    in_folder = file.suffix in {".yml", ".yaml"} and file.parent.name.lower() in _FOLDERS_OF_CI
    return name in _TESTS or in_folder or bool(_CI.search(name)) or not _OF_CI.isdisjoint(file.parts)


def is_lock(file: Path) -> bool:
    """Whether a file is written by a resolver, and may be large."""
    return file.suffix == ".lock" or bool(_LOCKED.search(file.name.lower()))


def _of_yaml(name: str, folder: str) -> Reader:
    if _IS_COMPOSE.search(name):
        kind = Kind.IMAGE
    elif _CI.search(name) or folder in _FOLDERS_OF_CI:
        return _texts(Kind.CI)
    else:
        kind = Kind.CI

    def read(file: Path, text: str) -> Iterable[Pin]:
        environments = import_module("lightlint.facts.versions.pins.formats.environments")
        if name.startswith(("env", "conda")) or environments.lists_packages(text):
            yield from environments.environment_pins(file, text)
        else:
            yield from _texts(kind)(file, text)

    return read


def _texts(kind: Kind) -> Reader:
    def read(file: Path, text: str) -> Iterable[Pin]:
        from lightlint.facts.versions.pins.formats.containers import text_pins

        return text_pins(file, text, kind)

    return read


def _load(place: str) -> Reader:
    """A reader by its module and name: most projects need two or three of them."""
    module, _, name = place.partition(":")
    found: Reader = getattr(import_module(f"lightlint.facts.versions.pins.formats.{module}"), name)
    return found
