"""Versions, specifiers, and what project files, notebooks and settings make the target of a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Reference
from versions_anew import forget_versions

from lightlint.facts.versions.requirements import (
    parse_pip_command,
    parse_requirement,
    requirement_files,
    script_install,
)
from lightlint.facts.versions.targets import installed, target_of
from lightlint.facts.versions.versions import Range, Target, Version, parse_range, releases

numbers = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(["", "", "", "rc1", "a2", "b1", ".dev3", ".post1"])
versions = st.tuples(numbers, suffixes).map("".join)


@given(versions, versions)
def test_order_is_that_of_packaging(left: str, right: str):
    assert (Version(left) < Version(right)) is (Reference(left) < Reference(right))
    assert (Version(left) == Version(right)) is (Reference(left) == Reference(right))


@given(
    st.lists(st.tuples(st.sampled_from(["==", ">=", "<=", ">", "<", "~="]), numbers), min_size=1, max_size=3), numbers
)
def test_specifiers_hold_what_packaging_says(clauses: list[tuple[str, str]], version: str):
    clauses = [(operator, text if operator != "~=" or "." in text else f"{text}.0") for operator, text in clauses]
    specifier = ",".join(operator + text for operator, text in clauses)
    assert (Version(version) in parse_range(specifier)) is (version in SpecifierSet(specifier))


@given(numbers, numbers)
def test_wildcards_hold_what_packaging_says(prefix: str, version: str):
    assert (Version(version) in parse_range(f"=={prefix}.*")) is (version in SpecifierSet(f"=={prefix}.*"))


@pytest.mark.parametrize("text", ["", "latest", "two", "1.x", "1..2"])
def test_what_is_no_version(text: str):
    with pytest.raises(ValueError, match="no version"):
        Version(text)


def test_local_parts_do_not_count():
    assert Version("2.13.0+cpu") == Version("2.13")
    assert str(Version("2.13.0+cpu")) == "2.13.0+cpu"
    assert repr(Version("2.0")) == "Version('2.0')"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("==1.9.*", ["1.9", "1.9.5"], ["1.8.6", "1.10"]),
        ("~=1.9.0", ["1.9.0", "1.9.5"], ["1.10", "1.8"]),
        ("~=1.9", ["1.9", "1.13"], ["2.0", "1.8"]),
        ("^1.9", ["1.9", "1.13"], ["2.0", "1.8"]),
        ("^0.3.1", ["0.3.1", "0.3.9"], ["0.4", "0.3.0"]),
        ("~1.9", ["1.9.5"], ["1.10"]),
        ("1.9", ["1.9", "1.9.5"], ["1.10"]),
        ("=2.0.1", ["2.0.1"], ["2.0.2"]),
        ("==2.1.0+cu118", ["2.1.0"], ["2.1.1", "2.0"]),
        (">=1.8, <2.0", ["1.8", "1.9.5"], ["2.0", "1.7"]),
        (">=2 <3", ["2.6"], ["3.0"]),
        ("^1.8 || ^2.0", ["1.8", "2.5"], ["3.0", "1.7"]),
        (">=2,!=2.3.*,!=2.5.0", ["2.0", "2.6"], ["1.9"]),
        ("*", ["1.0", "2.0"], []),
        ("", ["1.0", "2.0"], []),
    ],
)
def test_ranges(text: str, inside: list[str], outside: list[str]):
    found = parse_range(text)
    assert [version for version in inside if Version(version) not in found] == []
    assert [version for version in outside if Version(version) in found] == []


def test_what_a_range_says_surely():
    target = Target("lightning", Version("1.8"), Version("2.0"), "pin")
    assert target.surely_at_least("1.8")
    assert not target.surely_at_least("1.9")
    assert target.may_be_at_least("1.9")
    assert not target.may_be_at_least(Version("2.0.0"))
    assert target.surely_below("2")
    assert not target.surely_below("1.9")
    assert target.may_be_below("1.9")
    assert not target.may_be_below("1.8")
    assert target.version == Version("1.9.5")


def test_one_version_of_a_range():
    assert Target("torch", Version("2.1"), None, "pin").version == releases("torch")[-1]
    assert Target("torch", Version("99.1"), None, "pin").version == Version("99.1")
    assert Target("torch", None, Version("2.6"), "pin").version == Version("2.5.1")
    assert Target("torch", None, Version("0.4"), "pin").version == Version("0.4")


@pytest.mark.parametrize("package", ["torch", "lightning"])
def test_releases_are_in_order(package: str):
    known = releases(package)
    assert list(known) == sorted(set(known))
    assert known[-1] >= Version("2.6")


# ------------------------------------------------------------------------------------------------------ project files


@pytest.fixture
def project(tmp_path: Path):
    """Write files, and ask for the target of `src/train.py`."""

    def write(files: dict[str, str], package: str = "torch", at: str = "src/train.py", **options) -> Target:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        forget_versions()
        return target_of(package, tmp_path / at, tmp_path, **options)

    return write


PYPROJECT = '[project]\nname = "x"\ndependencies = [\n  "numpy",\n  "torch>=2.1",\n  "pytorch_lightning>=1.9,<2",\n]\n'


@pytest.mark.parametrize(
    ("file", "text", "row"),
    [
        ("pyproject.toml", '[project]\ndependencies = [\n"torch==2.1.2",\n]', 3),
        ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["torch==2.1.2"]', 2),
        ("pyproject.toml", '[dependency-groups]\nall = [{include-group = "x"}, "torch==2.1.2"]', 2),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\ntorch = "2.1.2"', 3),
        ("pyproject.toml", '[tool.poetry.group.ml.dependencies]\ntorch = {version = "2.1.2", source = "x"}', 2),
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\nml = ["torch==2.1.2"]', 2),
        ("pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["torch==2.1.2"]', 2),
        ("pyproject.toml", '[tool.pixi.dependencies]\npytorch = "2.1.2.*"', 2),
        ("requirements.txt", "numpy\n\ntorch == 2.1.2  # for cuda 11", 3),
        ("requirements.txt", "torch=2.1.2", 1),
        ("requirements-gpu.txt", 'torch[opt]==2.1.2 ; python_version >= "3.8"', 1),
        ("requirements/base.txt", "torch==2.1.2 \\\n    --hash=sha256:00", 1),
        ("constraints.txt", "torch===2.1.2", 1),
        ("requirements.txt", "https://host/whl/cu118/torch-2.1.2%2Bcu118-cp310-cp310-linux_x86_64.whl", 1),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch==2.1.2\n", 4),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['torch==2.1.2'])", 2),
        ("setup.py", "need = [\n  'torch==2.1.2',\n]\nimport s\ns.setup(install_requires=need)", 2),
        ("setup.py", "import s\ns.setup(extras_require={'gpu': ['torch==2.1.2']})", 2),
        ("environment.yml", "dependencies:\n  - python=3.10\n  - pytorch=2.1.2=py3.10_cuda11.8\n", 3),
        ("environment.yaml", "dependencies:\n  - conda-forge::pytorch 2.1.2\n", 2),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.1.2\n", 3),
        ("Pipfile", '[packages]\ntorch = {version = "==2.1.2", index = "x"}', 2),
        ("Pipfile.lock", '{"default": {\n"torch": {"version": "==2.1.2"}}}', 2),
        ("uv.lock", 'version = 1\n[[package]]\nname = "torch"\nversion = "2.1.2"\n', 4),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.1.2"\n', 3),
        ("pdm.lock", '[[package]]\nname = "torch"\nversion = "2.1.2"\n', 3),
        ("pylock.toml", '[[packages]]\nname = "torch"\nversion = "2.1.2+cu118"\n', 3),
    ],
)
def test_every_kind_of_file(project, file: str, text: str, row: int):
    target = project({file: text})
    assert target.version == Version("2.1.2")
    assert target.surely_below("2.2")
    assert target.source == f"pin {file}:{row}"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[project\ntorch"),
        ("pyproject.toml", "project = 3\ntool = 'torch'"),
        ("setup.py", "setup(install_requires=['torch'"),
        ("Pipfile.lock", "[] torch"),
        ("requirements.txt", "torch\ntorchmetrics==0.15\n-r missing.txt\n{{ torch }}"),
        ("requirements.txt", "-r requirements.txt\n"),
        ("environment.yml", "- mytorch=2.0\n- torchmetrics=0.15"),
        ("uv.lock", '[[package]]\nname = "torchmetrics"\nversion = "0.15"\n'),
    ],
)
def test_files_that_pin_nothing(project, file: str, text: str):
    assert project({file: text}).source in {"installed", "newest"}


def test_any_spelling_of_lightning(project):
    target = project({"pyproject.toml": PYPROJECT}, "lightning")
    assert (target.lower, target.upper) == (Version("1.9"), Version("2"))
    assert target.source == "pin pyproject.toml:6"
    both = "torch\nlightning==2.4.0\npytorch-lightning==2.5.1.post0\n"
    assert project({"src/requirements.txt": both}, "lightning").version == Version("2.4.0")


def test_includes_are_followed(project):
    target = project(
        {
            "requirements.txt": "-r deps/base.txt\n",
            "deps/base.txt": "--requirement=more.txt\n",
            "deps/more.txt": "torch<2.1",
        }
    )
    assert target.upper == Version("2.1")
    assert target.source == "pin deps/more.txt:1"


def test_the_nearest_directory_decides(project):
    files = {"requirements.txt": "torch>=2.0", "src/requirements.txt": "torch<2.0"}
    assert project(files).source == "pin src/requirements.txt:1"
    assert project({"src/requirements.txt": "torch"}, at="src/deep/er/train.py").source == "pin requirements.txt:1"


def test_directories_above_the_repository_do_not_count(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("torch==1.9")
    (tmp_path / "project" / ".git").mkdir(parents=True)
    assert target_of("torch", tmp_path / "project" / "a.py", tmp_path / "project").source in {"installed", "newest"}


def test_a_lock_beats_ranges(project):
    lock = '[[package]]\nname = "torch"\nversion = "2.4.1"\n'
    assert project({"pyproject.toml": PYPROJECT, "uv.lock": lock}).source == "pin uv.lock:3"
    nearer = project({"src/pyproject.toml": PYPROJECT})
    assert (nearer.source, nearer.version) == ("pin uv.lock:3", Version("2.4.1"))
    assert project({"src/requirements.txt": "torch<2.0"}, at="src/a.py").source == "pin uv.lock:3"


def test_a_lock_outside_of_a_nearer_range_does_not_count(project):
    lock = '[[package]]\nname = "torch"\nversion = "2.4.1"\n'
    assert project({"uv.lock": lock, "src/requirements.txt": "torch<2.0"}).source == "pin src/requirements.txt:1"


def test_pins_of_one_place_meet(project):
    target = project({"pyproject.toml": PYPROJECT, "requirements.txt": "torch==2.3.0"})
    assert target.version == Version("2.3")
    assert target.source == "pin requirements.txt:1"


def test_pins_for_several_environments_are_put_around(project):
    text = 'torch==1.9.0; python_version < "3.8"\ntorch==2.1.0; python_version >= "3.8"'
    target = project({"requirements.txt": text})
    assert (target.surely_at_least("1.9"), target.surely_at_least("2.0")) == (True, False)
    assert (target.surely_below("2.2"), target.surely_below("2.0")) == (True, False)


@pytest.mark.parametrize(
    ("torch", "refused"),
    [("torch==1.8", "1.7"), ("torch==1.13.1", "2.3"), ("torch<2.1", "2.4"), ("torch<=2.0.1", "2.4")],
)
def test_lightning_is_none_that_asks_for_a_newer_torch_than_is_pinned(project, torch: str, refused: str):
    target = project({"requirements.txt": f"numpy\n{torch}\npytorch-lightning"}, "lightning")
    assert target.surely_below(refused)
    assert target.may_be_at_least(str(Version(refused).release[0]) + f".{Version(refused).release[1] - 1}")
    assert target.source == "pin requirements.txt:2"


@pytest.mark.parametrize("torch", ["torch", "torch==2.4", "torch>=1.8"])
def test_lightning_is_the_newest_where_the_pinned_torch_allows_it(project, torch: str):
    assert project({"requirements.txt": torch}, "lightning") == Target(
        "lightning", releases("lightning")[-1], None, "newest"
    )


def test_extras_and_requirements_for_tests_do_not_narrow(project):
    text = PYPROJECT + '[project.optional-dependencies]\nold = ["torch==2.1"]\n'
    target = project({"pyproject.toml": text, "requirements/typing.txt": "torch==2.2"})
    assert (target.lower, target.upper) == (Version("2.1"), None)


def test_settings_come_first(project):
    files = {"pyproject.toml": PYPROJECT}
    target = project(files, setting="1.13")
    assert target.source == "setting"
    assert target.surely_at_least("1.13")
    assert target.surely_below("1.14")
    assert project(files, setting=">=1.8,<2.0").upper == Version("2.0")
    with pytest.raises(ValueError, match="target torch = 'new' is no version"):
        project(files, setting="new")


def test_a_notebook_s_own_pins_are_nearest(project):
    files = {"requirements.txt": "torch==1.9"}
    target = project(files, at="src/train.ipynb", pip_lines=["!pip install -q 'torch>=2.0,<2.2'"])
    assert (target.version, target.source) == (Version("2.1.2"), "pin in the notebook")
    assert project(files, pip_lines=["!pip install torch>=2.0"]).source == "pin requirements.txt:1"


SCRIPT = """#!/usr/bin/env -S uv run
# /// script
# requires-python = ">=3.9"
# dependencies = [
#   "torch==1.13.1",
#   "rich; os_name > 'a'",
# ]
# ///
import torch
"""


def test_a_script_s_own_head_pins_as_a_requirements_file(project):
    assert script_install(SCRIPT) == ("pip install 'torch==1.13.1' 'rich'",)
    target = project({"requirements.txt": "torch==2.9"}, pip_lines=script_install(SCRIPT))
    assert (target.version, target.source) == (Version("1.13.1"), "pin in the script")


@pytest.mark.parametrize("inside", ["# dependencies = [\n", "# dependencies = []\n", "#\n", ""])
def test_a_head_that_asks_for_nothing_pins_nothing(inside):
    assert script_install(f"# /// script\n{inside}# ///\nimport torch\n") == ()


def test_without_pins_what_is_installed_or_newest(project):
    for package in ("torch", "lightning"):
        target = project({}, package)
        version = installed(package)
        assert target.source == ("installed" if version else "newest")
        assert target.version == (version or releases(package)[-1])
        assert target.surely_at_least(target.version)


def test_ranges_join():
    assert parse_range("<2") | parse_range(">=2") == Range()
    assert (parse_range(">=2") & parse_range("<2")).empty


# ------------------------------------------------------------------------------------------------------- requirements


@pytest.mark.parametrize(
    ("text", "name", "specifier", "extras"),
    [
        ("torch", "torch", "", ()),
        ("Pytorch_Lightning [extra, all] >= 1.9 , < 2", "pytorch-lightning", ">=1.9,<2", ("extra", "all")),
        ("torch (>=1.0)", "torch", ">=1.0", ()),
        ("torch~=2.0; sys_platform == 'linux'", "torch", "~=2.0", ()),
        ("lightning @ git+https://github.com/x/y.git@1.0", "lightning", "", ()),
        ("git+https://github.com/x/y.git#egg=Some_Name", "some-name", "", ()),
        ("https://host/torch-2.1.0-cp310-cp310-manylinux1_x86_64.whl", "torch", "==2.1.0", ()),
        ("http://host/whl/{accelerator}/torch-1.0.0-{platform}-linux_x86_64.whl", "torch", "==1.0.0", ()),
        ("http://host/whl/torch-0.4.1-${PY}-linux_x86_64.whl", "torch", "==0.4.1", ()),
        ("./local", "", "", ()),
        (".[dev]", "", "", ()),
    ],
)
def test_requirements(text: str, name: str, specifier: str, extras: tuple[str, ...]):
    found = parse_requirement(text)
    assert found is not None
    assert (found.name, found.specifier, found.extras) == (name, specifier, extras)


@pytest.mark.parametrize("text", ["", "torch version", "{pkg}", "$X", "torch>=", "install_requires ="])
def test_what_is_no_requirement(text: str):
    assert parse_requirement(text) is None


@given(st.text(alphabet="torch[]>=<~!.,;@ 12'\"#-+/\\&|\n", max_size=40))
def test_no_text_breaks_the_parsers(text: str):
    parse_requirement(text)
    command = "pip install " + text
    for found in parse_pip_command(command):
        assert 0 < found.start < found.end <= len(command)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("!pip install torch", ["torch"]),
        ("%pip install -q torch==2.0.1 lightning>=2", ["torch==2.0.1", "lightning>=2"]),
        ("pip3 install --upgrade torch", ["torch"]),
        ("!python -m pip install torch", ["torch"]),
        ("!{sys.executable} -m pip --no-cache-dir install torch", ["torch"]),
        ("! uv pip install torch", ["torch"]),
        ("!sudo /usr/bin/pip install torch", ["torch"]),
        ("!pip install torch -f https://host/whl.html -i https://host/simple lightning", ["torch", "lightning"]),
        ("!pip install --index-url=https://host torch", ["torch"]),
        ("!pip install -r requirements.txt torch", ["torch"]),
        ("!pip install -qr requirements.txt", []),
        ("!pip install -e .", [""]),
        ("!pip install torch > /dev/null 2>&1", ["torch"]),
        ("!pip install torch 1>/dev/null", ["torch"]),
        ("!pip install torch | tail -1", ["torch"]),
        ("!cd x && pip install a; pip install b", ["a", "b"]),
        ("!pip install a \\\n  b", ["a", "b"]),
        ("pip install a  # and b\npip install c", ["a", "c"]),
        ("!pip uninstall torch", []),
        ("!pip list", []),
        ("!echo install torch", []),
        ("!pip install {package}", []),
    ],
)
def test_pip_commands(command: str, expected: list[str]):
    assert [found.name + found.specifier for found in parse_pip_command(command)] == expected


def test_what_a_shell_makes_of_a_command():
    command = "!pip install -U torch>=2.0 'lightning>=2.0' numpy==1.0 \"x<2\""
    torch, lightning, numpy, other = parse_pip_command(command)
    assert [found.redirected for found in (torch, lightning, numpy, other)] == [True, False, False, False]
    assert [found.quoted for found in (torch, lightning, numpy, other)] == [False, True, False, True]
    assert command[lightning.start : lightning.end] == "'lightning>=2.0'"
    assert torch.upgrade
    assert numpy.exact
    assert not lightning.exact


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("torch==2.1", True),
        ("torch===2.1", True),
        ("torch==2.1.*", False),
        ("torch>=2.1", False),
        ("torch", False),
        ("git+https://github.com/x/y.git", False),
        ("git+https://github.com/x/y@0123abc", True),
        ("git+https://github.com/x/y.git@v1.0", True),
        ("https://host/torch-2.1.0-cp310-cp310-linux_x86_64.whl", True),
    ],
)
def test_exact_requirements(text: str, exact: bool):
    [found] = parse_pip_command(f"pip install '{text}'")
    assert found.exact is exact


def test_requirement_files():
    assert requirement_files("!pip install -q -r a.txt -c 'b c.txt' torch") == ("a.txt", "b c.txt")
    assert requirement_files("!pip install torch") == ()


@pytest.mark.parametrize(
    ("folder", "package", "version"),
    [
        ("torch-2.1.0+cu118.dist-info", "torch", "2.1.0"),
        ("pytorch_lightning-1.9.5.dist-info", "lightning", "1.9.5"),
        ("pytorch_lightning-1.0.0-py3.8.egg-info", "lightning", "1.0.0"),
        ("torch_geometric-2.1.0.dist-info", "torch", None),
        ("torch", "torch", None),
        ("torch-broken.dist-info", "torch", None),
    ],
)
def test_what_is_installed_is_read_from_the_names_of_folders(tmp_path, monkeypatch, folder, package, version):
    (tmp_path / folder).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path)])
    installed.cache_clear()
    found = installed(package)
    installed.cache_clear()
    assert found == (Version(version) if version else None)
