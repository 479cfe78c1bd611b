"""Which files are found, and that git itself agrees about those it ignores."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lightlint.config.settings import load
from lightlint.sources.discover import Problem, discover
from lightlint.sources.gitignore import parse_gitignore

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def plant(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def found(*paths: Path | str, exclude: tuple[str, ...] = (), **options: bool) -> list[str]:
    files, problems = discover([str(path) for path in paths], exclude=exclude, **options)  # type: ignore[arg-type]
    assert problems == []
    return [path.as_posix() for path in files]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_macos_leaves_behind_is_no_python(project: Path) -> None:
    plant(project, "a.py", "._a.py", "__MACOSX/b.py", "src/._c.ipynb")
    assert found(".", exclude=load(isolated=True).exclude) == ["a.py"]


def test_python_files_and_notebooks_are_found_by_name(project: Path) -> None:
    plant(project, "b.py", "a.ipynb", "src/z.pyw", "src/a.py", "c.pyi", "readme.md", "src/noext", "d.py/e.py")
    assert found(".") == ["a.ipynb", "b.py", "d.py/e.py", "src/a.py", "src/z.pyw"]
    assert found("src", "./b.py", "src/a.py") == ["src/a.py", "src/z.pyw", "b.py"]


def test_a_named_file_is_always_taken(project: Path) -> None:
    plant(project, "venv/a.py", "script", ".gitignore")
    (project / ".gitignore").write_text("script\nvenv\n")
    assert found("venv/a.py", "script", exclude=("venv",)) == ["venv/a.py", "script"]
    assert found("venv", exclude=("venv",)) == ["venv/a.py"]
    assert found("venv/a.py", "venv", "script", exclude=("venv",), force_exclude=True) == ["script"]


def test_globs_match_names_and_paths_from_the_root(project: Path) -> None:
    plant(project, "a_test.py", "a.py", "docs/conf.py", "src/docs/x.py", "src/gen/deep/x.py", "src/gen/y.py")
    assert found(".", exclude=("*_test.py", "docs/*.py", "src/gen/")) == ["a.py", "src/docs/x.py"]
    assert found("src", exclude=("docs", "**/deep")) == ["src/gen/y.py"]
    files, _ = discover(["src"], exclude=("docs",), extend_exclude=("gen/y.py",), root=project / "src")
    assert [path.as_posix() for path in files] == ["src/gen/deep/x.py"]
    with pytest.raises(ValueError, match="malformed"):
        discover(["."], exclude=("{a",))


def test_virtual_environments_and_git_directories_are_left_alone(project: Path) -> None:
    plant(project, "env/pyvenv.cfg", "env/a.py", "conda/conda-meta/history", "conda/b.py", ".git/hooks/c.py", "d.py")
    assert found(".") == ["d.py"]


def test_paths_that_yield_nothing_are_told(project: Path) -> None:
    plant(project, "a.py")
    files, problems = discover(["none", "a.py"], exclude=())
    assert files == [Path("a.py")]
    assert problems == [Problem("none", "no such file or directory")]


def test_links_neither_loop_nor_double(project: Path) -> None:
    plant(project, "src/a.py", "other/b.py")
    (project / "src" / "loop").symlink_to(project / "src")
    (project / "src" / "self").symlink_to("self")
    (project / "src" / "a_link.py").symlink_to("a.py")
    (project / "src" / "b_link.py").symlink_to(project / "other" / "b.py")
    (project / "src" / "dead.py").symlink_to("nowhere")
    (project / "named").symlink_to(project / "other")
    assert found("src") == ["src/a.py", "src/b_link.py"]
    assert found(".") == ["other/b.py", "src/a.py"]
    assert found("named") == ["named/b.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="names need not be UTF-8 on Linux only")
def test_names_that_are_not_utf_8_are_found_and_ignored(project: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    plant(project, name, os.fsdecode(b"\xff/x.py"))
    assert found(".") == [name, os.fsdecode(b"\xff/x.py")]
    (project / ".gitignore").write_bytes(b"\xff/\ncaf?.py")
    assert found(".") == []


def test_ignore_files_of_every_directory_count_from_the_repositorys_root(project: Path) -> None:
    plant(project, "top/.gitignore", "top/a.py", "top/repo/.git/info/exclude", "top/repo/sub/.gitignore")
    plant(project, *(f"top/repo/{name}" for name in ("a.py", "b.py", "sub/a.py", "sub/c.py", "sub/gen/d.py", "e.py")))
    (project / "top/.gitignore").write_text("*.py")
    (project / "top/repo/.git/info/exclude").write_text("e.py")
    (project / "top/repo/.gitignore").write_text("/a.py\nc.py\ngen/\n")
    (project / "top/repo/sub/.gitignore").write_text("!c.py\n")
    expected = ["top/repo/b.py", "top/repo/sub/a.py", "top/repo/sub/c.py"]
    assert found("top") == expected
    assert found("top/repo/sub") == expected[1:]
    assert len(found("top", respect_gitignore=False)) == 7


segments = st.sampled_from(
    ["a", "b", "ab", "a b", "é", "*", "**", "***", "?", "[ab]", "[!a]", "[^a-]", "\\a", "\\*", "[", "a*"]
)
odd = st.text(st.sampled_from("ab*?[]!-^\\/ .:é#"), min_size=1, max_size=8)
patterns = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "!", "/", "!/", "\\!", "#", "\\#"]),
    st.lists(segments, min_size=1, max_size=3).map("/".join) | st.lists(segments, max_size=3).map("".join) | odd,
    st.sampled_from(["", "", "/", " ", "\\ ", "/**", "\r"]),
)
NAMES = ["a", "b", "ab", "a b", "é", "!a", "#a", "a ", "-", "*", "[ab]", "aa", ".a", "\\"]
PATHS = [
    *NAMES,
    *(f"a/{name}" for name in NAMES),
    *(f"b/a/{name}" for name in NAMES),
    "ab/b",
    "a b/é/a",
    "b/b/b",
    "]",
    ":",
    "~",
    "z",
    "1",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository where every path of PATHS is a directory below `directories` and none below `files`."""
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "files").mkdir()
    for path in PATHS:
        (root / "directories" / path).mkdir(parents=True, exist_ok=True)
    return root


def ignored_by_git(root: Path, text: str) -> list[str]:
    """The paths git ignores where the text is the ignore file of both directories."""
    for kind in ("files", "directories"):
        (root / kind / ".gitignore").write_bytes(text.encode())
    result = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        input="\0".join(f"{kind}/{path}" for kind in ("files", "directories") for path in PATHS).encode(),
        capture_output=True,
        check=False,
    )
    assert result.returncode in (0, 1), result.stderr
    return [path.decode() for path in result.stdout.split(b"\0")[:-1]]


def ignored_here(text: str) -> list[str]:
    """The paths that are ignored, or inside a directory that is."""
    ignore = parse_gitignore(text.encode())

    def hidden(path: str, is_directory: bool) -> bool:
        names = path.split("/")
        above = ("/".join(names[:count]) for count in range(1, len(names)))
        return any(ignore.verdict(one.encode(), True) for one in above) or bool(
            ignore.verdict(path.encode(), is_directory)
        )

    return [f"{kind}/{path}" for kind in ("files", "directories") for path in PATHS if hidden(path, kind != "files")]


# Git documents `**` beside other characters as plain asterisks; some releases match slashes with them there.
STUCK_STARS = re.compile(r"(?m)[^/\n]\*\*|\*\*[^/*\n]")


@needs_git
@settings(suppress_health_check=list(HealthCheck))
@given(lines=st.lists(patterns, min_size=1, max_size=4))
def test_git_ignores_the_same(repository: Path, lines: list[str]) -> None:
    text = "\n".join(lines)
    assume(not STUCK_STARS.search(text))
    assert ignored_here(text) == ignored_by_git(repository, text)


CLASSES = [
    "[[:alpha:]]",
    "[![:digit:]b]",
    "[[:nope:]]",
    "[[:alpha]",
    "[]a]",
    "[!]a]",
    "[z-a]",
    "[a-]",
    "[--b]",
    "[\\]]",
]
CLASSES += [
    "[a",
    "a\\",
    "[[:space:]-~]",
    "[a-\\b]",
    "a/**/b",
    "**/a",
    "a/**",
    "a/*",
    "a/*/",
    "/**",
    "**",
    "*/",
    "//a",
    "a//",
]


@needs_git
@pytest.mark.parametrize("pattern", CLASSES)
def test_git_reads_odd_patterns_the_same(repository: Path, pattern: str) -> None:
    assert ignored_here(pattern) == ignored_by_git(repository, pattern)


def test_stars_beside_other_characters_are_plain() -> None:
    ignore = parse_gitignore(b"a**/b")
    assert [ignore.verdict(path, False) for path in (b"a/b", b"ac/b", b"ab", b"a/c/b")] == [True, True, None, None]


@needs_git
def test_what_is_found_is_what_git_does_not_ignore(repository: Path) -> None:
    plant(repository, "x/a.py", "x/y/a.py", "x/y/b.py", "build/a.py", "x/build", "c.py", "x/keep/c.py", "x/.gitignore")
    (repository / ".gitignore").write_text("build\n*.py\n!a.py\n!x/keep/**\n")
    (repository / "x/.gitignore").write_text("/y/a.py\n!b.py\n")
    command = ["git", "-c", "core.excludesFile=", "ls-files", "-co", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(found(repository)) == sorted((repository / name).as_posix() for name in listed)
    assert listed
