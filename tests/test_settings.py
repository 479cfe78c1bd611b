"""Settings files: where they are found, what they may hold, and what is said when they hold something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightlint.config import settings
from lightlint.config.globs import absolute, matches
from lightlint.config.options import SettingsError
from lightlint.config.settings import DEFAULT_EXCLUDE, Settings, load
from lightlint.finding import Finding, Location, Tier
from lightlint.pages import all_pages


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working directory."""
    settings.forget()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def error(**sources: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**sources)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rules_of(family: str) -> set[str]:
    return {page.name for page in all_pages().values() if page.family == family}


def test_without_a_file_everything_is_as_stated(project: Path) -> None:
    found = load()
    assert found.file is None
    assert found.selection.active == set(all_pages())
    assert found.exclude == DEFAULT_EXCLUDE
    assert (found.fix, found.unsafe_fixes, found.notes, found.distributed) == (False, False, False, None)
    assert found.output_format == "full"


def test_all_keys_are_read(project: Path) -> None:
    write(
        project / "pyproject.toml",
        """
        [tool.lightlint]
        select = ["LL1", "ranks"]
        extend-select = ["LL5"]
        ignore = ["LL4"]
        extend-ignore = ["LL0"]
        exclude = ["old", "a/b/*.py"]
        extend-exclude = ["gen"]
        force-exclude = true
        respect-gitignore = false
        fix = true
        unsafe-fixes = true
        output-format = "json"
        notes = true
        distributed = true
        [tool.lightlint.target]
        torch = "2.4"
        lightning = "2.1.0"
        [tool.lightlint.per-file-ignores]
        "tests/**" = ["LL1"]
        [tool.lightlint.extend-per-file-ignores]
        "tests/**" = ["LL5"]
        """,
    )
    found = load()
    assert found.file == project / "pyproject.toml"
    assert found.selection.active == rules_of("steps") | rules_of("devices")
    assert found.exclude == ("old", f"{project}/a/b/*.py", "gen")
    assert (found.force_exclude, found.respect_gitignore, found.fix, found.unsafe_fixes) == (True, False, True, True)
    assert (found.output_format, found.notes, found.distributed) == ("json", True, True)
    assert (found.target.torch, found.target.lightning) == ("2.4", "2.1.0")
    assert [(ignores.pattern, ignores.rules) for ignores in found.per_file_ignores] == [
        (f"{project}/tests/**", rules_of("steps") | rules_of("devices"))
    ]
    assert found.rules_for("tests/deep/test_x.py") == frozenset()
    assert found.rules_for("src/x.py") == found.selection.active


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('selct = ["LL1"]', "pyproject.toml: selct: unknown key; did you mean `select`?"),
        ("zzz = 1", "pyproject.toml: zzz: unknown key"),
        ('ignore = ["rnaks"]', "pyproject.toml: ignore: unknown rule `rnaks`; did you mean `ranks`?"),
        ('select = "LL1"', "pyproject.toml: select: expected a list of strings, found a string"),
        ("select = [1]", "pyproject.toml: select: expected a list of strings, found a number in it"),
        ('fix = "yes"', "pyproject.toml: fix: expected true or false, found a string"),
        ("exclude = true", "pyproject.toml: exclude: expected a list of strings, found true or false"),
        ('exclude = ["{a"]', "pyproject.toml: exclude: glob `{a` is malformed: "),
        ('output-format = "jsn"', "pyproject.toml: output-format: unknown format `jsn`; did you mean `json`?"),
        (
            'output-format = "xml"',
            "pyproject.toml: output-format: unknown format `xml`; there are full, concise, grouped",
        ),
        ('distributed = "maybe"', 'pyproject.toml: distributed: expected true, false or "auto", found a string'),
        ('target = "2.4"', "pyproject.toml: target: expected a table of torch and lightning versions, found a string"),
        (
            "target.torch = 2.4",
            'pyproject.toml: target.torch: expected a version in quotes such as "2.4" or ">=1.9,<2.3", found a number',
        ),
        (
            'target.torch = "new"',
            'pyproject.toml: target.torch: expected a version in quotes such as "2.4" or ">=1.9,<2.3", found "new"',
        ),
        ('target.touch = "2.4"', "pyproject.toml: target.touch: unknown key; did you mean `torch`?"),
        ('per-file-ignores = ["LL1"]', "pyproject.toml: per-file-ignores: expected a table"),
        ('per-file-ignores."a.py" = ["LL1", "stepz"]', "pyproject.toml: per-file-ignores: unknown rule `stepz`; did"),
        ('extend = "nowhere.toml"', "nowhere.toml: cannot be read: No such file or directory"),
        ("extend = 3", "pyproject.toml: extend: expected a path, found a number"),
        ('extend = "pyproject.toml"', "pyproject.toml: extend: pyproject.toml is extended in a circle"),
        ("select = [", "pyproject.toml: not valid TOML: "),
    ],
)
def test_a_mistake_gets_one_line(project: Path, text: str, says: str) -> None:
    write(project / "pyproject.toml", f"[tool.lightlint]\n{text}\n")
    assert error().startswith(says)


def test_a_table_that_is_none_gets_one_line(project: Path) -> None:
    write(project / "pyproject.toml", "[tool]\nlightlint = 1\n")
    assert error() == "pyproject.toml: tool.lightlint: expected a table, found a number"


def test_a_command_line_mistake_names_the_option(project: Path) -> None:
    with pytest.raises(SettingsError, match=r"^--select: unknown rule `rnaks`; did you mean `ranks`\?$"):
        load({"select": ["rnaks"]})
    with pytest.raises(SettingsError, match=r"^--target-torch: expected a version in quotes"):
        load({"target": {"torch": "new"}})


def test_a_pyproject_of_another_tool_is_not_ours(project: Path) -> None:
    write(project / "pyproject.toml", '[project]\nname = "lightlint-user"\n[tool.ruff]\nselect = 3\n')
    assert load().file is None


def test_a_broken_pyproject_that_never_names_lightlint_is_left_alone(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.ruff\n")
    assert load().file is None


@pytest.mark.parametrize("name", ["lightlint.toml", ".lightlint.toml"])
def test_a_file_of_its_own_needs_no_table_and_goes_first(project: Path, name: str) -> None:
    write(project / "pyproject.toml", "[tool.lightlint]\nnotes = false\n")
    write(project / name, "notes = true\n")
    assert load().notes is True
    assert load().file == project / name


def test_the_nearest_file_holds_and_is_not_merged_with_the_one_above(project: Path) -> None:
    write(project / "pyproject.toml", '[tool.lightlint]\nselect = ["LL1"]\nnotes = true\n')
    write(project / "sub/pyproject.toml", '[tool.lightlint]\nignore = ["LL1"]\n')
    write(project / "sub/other/pyproject.toml", "[tool.black]\n")
    top = load()
    nested = top.for_path("sub/other/deep/x.py")
    assert nested.file == project / "sub/pyproject.toml"
    assert nested.notes is False
    assert nested.selection.active == set(all_pages()) - rules_of("steps")
    assert top.for_path("x.py") is top
    assert nested.for_path(project / "x.py") is top


def test_outside_any_project_the_settings_of_the_working_directory_hold(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(project / "pyproject.toml", "[tool.lightlint]\nnotes = true\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    top = load()
    assert top.for_path(elsewhere / "x.py") is top


def test_extend_lays_a_file_over_its_base(project: Path) -> None:
    write(
        project / "base/lightlint.toml",
        'select = ["LL1", "LL4"]\nexclude = ["x/y"]\nnotes = true\ntarget.torch = "2.0"\n',
    )
    write(
        project / "pyproject.toml",
        '[tool.lightlint]\nextend = "base/lightlint.toml"\nignore = ["LL4"]\ntarget.lightning = "2.2"\n',
    )
    found = load()
    always = {page.name for page in all_pages().values() if page.code in ("LL000", "LL001", "LL003")}
    assert found.selection.active == rules_of("steps") | always
    assert found.exclude == (f"{project}/base/x/y",)
    assert found.notes is True
    assert (found.target.torch, found.target.lightning) == ("2.0", "2.2")


def test_a_circle_of_files_is_named(project: Path) -> None:
    write(project / "lightlint.toml", 'extend = "a.toml"\n')
    write(project / "a.toml", 'extend = "lightlint.toml"\n')
    assert error() == "a.toml: extend: lightlint.toml is extended in a circle"


def test_the_command_line_holds_over_nested_files_too(project: Path) -> None:
    write(project / "sub/lightlint.toml", 'select = ["LL4"]\noutput-format = "json"\n')
    top = load({"select": ["LL1"], "output-format": "concise", "extend-exclude": ["gen"]})
    nested = top.for_path("sub/x.py")
    assert nested.selection.active == top.selection.active
    assert nested.output_format == "concise"
    assert nested.exclude[-1] == "gen"


def test_one_given_file_holds_for_all_paths_and_isolated_reads_none(project: Path) -> None:
    write(project / "sub/lightlint.toml", "notes = true\n")
    given = write(project / "ci.toml", "fix = true\n")
    found = load(file=given)
    assert found.fix is True
    assert found.for_path("sub/x.py") is found
    write(project / "lightlint.toml", "zzz = 1\n")
    assert load(isolated=True).for_path("sub/x.py").notes is False


def test_a_given_file_that_is_missing_gets_one_line(project: Path) -> None:
    with pytest.raises(SettingsError, match=r"^none\.toml: cannot be read: No such file or directory$"):
        load(file=Path("none.toml"))


def note(name: str) -> Finding:
    at = Location(1, 1)
    return Finding("LL999", name, Tier.NOTE, "", "x.py", 0, 1, at, at)


def test_notes_are_shown_where_asked_for(project: Path) -> None:
    assert not load().shows(note("some-note"))
    assert load({"notes": True}).shows(note("some-note"))
    for page in list(all_pages().values())[:3]:
        assert load({"extend-select": [page.code]}).shows(note(page.name))
        assert not load({"select": [page.family]}).shows(note(page.name))


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("__init__.py", "/p/a/b/__init__.py", True),
        ("test_*.py", "/p/a/test_x.py", True),
        ("test_*.py", "/p/a/my_test_x.py", False),
        ("tests/*", "/p/tests/a/b.py", True),
        ("tests/**", "/p/tests/a/b.py", True),
        ("tests", "/p/tests/a/b.py", False),
        ("tests", "/p/tests", True),
        ("./tests/x.py", "/p/tests/x.py", True),
        ("**/conf.py", "/p/conf.py", True),
        ("**/conf.py", "/p/a/b/conf.py", True),
        ("a/**/z.py", "/p/a/z.py", True),
        ("a/**/z.py", "/p/a/b/c/z.py", True),
        ("{a,b}.py", "/p/b.py", True),
        ("{a,b}.py", "/p/c.py", False),
        ("a,b.py", "/p/a,b.py", True),
        ("x[0-9].py", "/p/x7.py", True),
        ("x[!0-9].py", "/p/x7.py", False),
        ("a.py", "/p/aXpy", False),
        ("/other/*.py", "/other/x.py", True),
    ],
)
def test_globs_match_as_ruffs(glob: str, path: str, expected: bool) -> None:
    assert matches(absolute(glob, "/p"), path) is expected


def test_a_directory_with_glob_characters_is_taken_literally() -> None:
    assert matches(absolute("a/*.py", "/p [1]{x}"), "/p [1]{x}/a/b.py")


def test_a_negated_glob_holds_in_all_other_files(project: Path) -> None:
    write(project / "lightlint.toml", '[per-file-ignores]\n"!src/**" = ["ALL"]\n')
    found: Settings = load()
    assert found.rules_for("src/a.py") == set(all_pages())
    assert found.rules_for("tests/a.py") == frozenset()
