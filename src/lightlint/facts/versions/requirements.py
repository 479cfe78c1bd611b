"""Requirements as people write them: PEP 508 strings and the command lines of `pip install`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*")
_CLAUSES = re.compile(r"\(?\s*((?:(?:===|[<>=!~]=|[<>])\s*[^\s,;()<>=!~]+\s*,?\s*)*)\)?\s*$")
_WHEEL = re.compile(
    r"([A-Za-z0-9_.]+)-([^-/{$]+)(?:(?:-[^-/]+){3,4}|(?:-[^-/]+)*?-(?:\{\w+\}|\$\w+|\$\{\w+\})(?:-[^-/]+)*)\.whl\b"
    r"|([A-Za-z0-9_.-]+?)-(\d[^-/]*)\.(?:tar\.gz|zip)\b"
)  # of a wheel also where a variable has its tags: Colab's `torch-1.0.0-{platform}-linux_x86_64.whl`
_EGG = re.compile(r"#(?:.*&)?egg=([\w.-]+)")
_TAGGED = re.compile(
    r"/([\w.-]+?)(?:\.git)?@v?(\d+\.\d+(?:\.\d+)?)(-release)?(?=#|$)"
)  # of a repository: its tag is a version
_REVISION = re.compile(r"\.git@[\w./-]+|github\.com/[^/]+/[^/@]+@[\w./-]+")

# Options of `pip install` that take the next word as their value.
_VALUED = {
    *("-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-f", "--find-links", "-i", "--index-url"),
    *("--extra-index-url", "-t", "--target", "--prefix", "--root", "--src", "--platform", "--python-version"),
    *("--implementation", "--abi", "--upgrade-strategy", "--no-binary", "--only-binary", "--progress-bar", "--log"),
    *("--proxy", "--retries", "--timeout", "--exists-action", "--trusted-host", "--cert", "--client-cert"),
    *("--cache-dir", "--report", "--global-option", "-C", "--config-settings", "--root-user-action", "--group"),
    *("--torch-backend", "-p", "--python", "--index", "--default-index"),
}
_WORD = re.compile(r"""(?:[^\s"';&|\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|["'])+|&&|\|\||[;&|]""", re.DOTALL)
_REDIRECTION = re.compile(r"\d*(?:>>|<<<|<<|>|<)(?:&\d)?")
_SCRIPT = re.compile(r"^# /// script\s*\n((?:^#(?: .*)?\n)+?)^# ///\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing to install. From a command line also where it stands there: offsets `[start, end)`.

    `name` is normalised (`pytorch_lightning` is `pytorch-lightning`), and empty for what says no name. `url` is the
    address or path it comes from, if that is said. `quoted` tells whether a shell takes the text as it is.
    """

    name: str
    specifier: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""
    url: str = ""
    quoted: bool = True
    upgrade: bool = False
    start: int = 0
    end: int = 0

    @property
    def exact(self) -> bool:
        """Whether the same thing is installed next year: an exact version, a wheel, a VCS revision."""
        if self.url:
            return bool(_WHEEL.search(self.url) or _REVISION.search(self.url))
        return self.specifier.startswith("==") and "," not in self.specifier and "*" not in self.specifier

    @property
    def redirected(self) -> bool:
        """Whether a shell takes the version for a file to write to or read from: an unquoted `torch>=2`."""
        return not self.quoted and bool(re.search("[<>]", self.specifier))


def normalise(name: str) -> str:
    """A distribution's name in the one spelling of the packaging standards."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirement(text: str) -> Requirement | None:
    """Read a requirement: PEP 508, or an address of a wheel or repository. None where it is neither."""
    text = text.strip()
    if re.match(r"[\w+]+://|git\+|\.+(?:/|\[|$)|/|[\w./-]+\.whl$", text):
        return _from_address(text)
    named = _NAME.match(text)
    if not named:
        return None
    name, extras = normalise(named[1]), tuple(part.strip() for part in (named[2] or "").split(",") if part.strip())
    rest = text[named.end() :]
    if rest.startswith("@"):
        url, _, marker = rest[1:].partition(" ;")
        found = _from_address(url.strip(), name)
        return replace(found, name=name, extras=extras, marker=marker.strip())
    clauses, _, marker = rest.partition(";")
    specifier = _CLAUSES.match(clauses)
    if not specifier:
        return None
    return Requirement(name, re.sub(r"\s+", "", specifier[1]).rstrip(","), extras, marker.strip())


def _from_address(url: str, name: str = "") -> Requirement:
    """What an address tells of itself: a wheel its name and version, a repository its name, and a tag its version if it is the
    repository of what is installed."""
    address = url.replace("%2B", "+")
    if file := _WHEEL.search(address):
        return Requirement(normalise(file[1] or file[3]), f"=={file[2] or file[4]}", url=url)
    egg, tagged = _EGG.search(address), _TAGGED.search(address)
    repository = normalise(tagged[1]) if tagged else ""
    name = normalise(egg[1]) if egg else name or repository
    if tagged is None or name != repository:
        return Requirement(name, url=url)
    series = ".*" if tagged[3] or tagged[2].count(".") == 1 else ""
    return Requirement(name, f"=={tagged[2]}{series}", url=url)


def parse_pip_command(command: str) -> tuple[Requirement, ...]:
    """The requirements that a command line's `pip install` names, in order.

    Takes what stands in a notebook (`!pip install ...`, `%pip install ...`, `!python -m pip ...`, `!uv pip ...`) or in
    a script, also several lines and commands joined by `&&` or `;`. Requirements files (`-r`) are left out, see
    `requirement_files`.
    """
    found = []
    for words in _installs(command):
        upgrade = any(re.fullmatch(r"--upgrade|-\w*U\w*", word.group()) for word in words)
        for _, word in _arguments(words, keep={"-e", "--editable"}):
            bare = _unquote(word.group())
            if requirement := parse_requirement(bare):
                quoted = bare != word.group()
                found.append(replace(requirement, quoted=quoted, upgrade=upgrade, start=word.start(), end=word.end()))
    return tuple(found)


def script_install(text: str) -> tuple[str, ...]:
    """The `pip install` that means what a script's own head asks for, its `# /// script` (PEP 723); none without one."""
    found = _SCRIPT.search(text) if "# /// script" in text else None
    if found is None:
        return ()
    import tomllib

    try:
        data = tomllib.loads(re.sub(r"^# ?", "", found[1], flags=re.MULTILINE))
    except tomllib.TOMLDecodeError:
        return ()
    asked = data.get("dependencies")
    plain = (
        [each.partition(";")[0].strip() for each in asked if isinstance(each, str)] if isinstance(asked, list) else []
    )
    return (f"pip install {' '.join(map(repr, plain))}",) if plain else ()


def requirement_files(command: str) -> tuple[str, ...]:
    """The files that a command line's `pip install -r` (and `-c`) names."""
    options = {"-r", "--requirement", "-c", "--constraint"}
    return tuple(
        _unquote(word.group())
        for words in _installs(command)
        for option, word in _arguments(words, keep=options)
        if option
    )


def _installs(command: str) -> Iterator[list[re.Match[str]]]:
    """The words behind each `pip install`."""
    text = command.replace("\\\n", "  ")
    offset = 0
    for line in text.splitlines(keepends=True):
        parts: list[list[re.Match[str]]] = [[]]
        for word in _WORD.finditer(text, offset, offset + len(line)):
            if word.group().startswith("#"):
                break
            if re.fullmatch("&&|[|]{2}|[;&|]", word.group()):
                parts.append([])
            else:
                parts[-1].append(word)
        offset += len(line)
        for words in parts:
            plain = [word.group().lstrip("!%") for word in words]
            pip = next((i for i, word in enumerate(plain) if re.fullmatch(r"(?:.*/)?pip[\d.]*", word)), None)
            if pip is None:
                continue
            verb = next((i for i in range(pip + 1, len(plain)) if not plain[i].startswith("-")), None)
            if verb is not None and plain[verb] == "install":
                yield words[verb + 1 :]


def _arguments(words: list[re.Match[str]], keep: set[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """What is no option, no option's value and no redirection; values of the options in `keep` come with them."""
    option = ""
    for word in words:
        text = word.group()
        if option:
            if option in keep:
                yield option, word
            option = ""
        elif text in _VALUED:
            option = text
        elif re.fullmatch(r"-\w{2,}", text) and f"-{text[-1]}" in _VALUED:  # short options in one word: -qr
            option = f"-{text[-1]}"
        elif redirection := _REDIRECTION.match(text):
            option = "" if redirection.end() < len(text) or "&" in redirection.group() else ">"
        elif not text.startswith("-"):
            yield "", word


def _unquote(word: str) -> str:
    return re.sub(r"""["']|\\(?=.)""", "", word)
