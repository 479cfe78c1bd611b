"""The rule book as a whole: pages and checks belong together one to one, and every page keeps the form."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import libcst as cst
import pytest
from rulebook import examples

from lightlint.check import Check
from lightlint.linting.asked import OF_ANY_PROGRAM, events_of
from lightlint.needs import NeedsError, parse_needs
from lightlint.pages import FAMILIES, Page, PageError, all_pages, folder, parse_page
from lightlint.scaffold import ADVICE, NAME, WITHOUT_CHECKS
from lightlint.text import NOTEBOOK, Text

CHECKS = Path(import_module("lightlint.checks").__path__[0])
PAGES = list(all_pages().values())
RULES = [page for page in PAGES if page.family != WITHOUT_CHECKS]

HEADINGS = ["Why it is bad", "When it is right", "Fix safety", "How `lightlint confirm` judges it", "References"]


_ELSEWHERE = re.compile(r" \((run by )?\w+\.py:\d+\)$")  # a finding of what one file does in another


def check_of(page: Page) -> type[Check]:
    """The one subclass of Check that a rule's module defines."""
    module = import_module(page.check_module)
    classes = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Check) and each.__module__ == page.check_module
    ]
    assert len(classes) == 1, f"{page.check_module} defines {len(classes)} checks"
    return classes[0]


def test_pages_and_checks_are_one_to_one() -> None:
    modules = {
        ".".join(("lightlint.checks", *path.relative_to(CHECKS).with_suffix("").parts)).removesuffix(".__init__")
        for path in CHECKS.rglob("*.py")
        if "(Check)" in path.read_text("utf-8")
    }
    assert modules == {page.check_module for page in RULES}


def test_a_person_can_take_in_a_folder_of_checks_at_once() -> None:
    folders = (CHECKS, *(path for path in CHECKS.rglob("*") if path.is_dir() and path.name != "__pycache__"))
    sizes = {
        str(each.relative_to(CHECKS)): sum(not path.name.startswith("__") for path in each.iterdir())
        for each in folders
    }
    assert {name: size for name, size in sizes.items() if size > 12} == {}


def test_no_page_hides_another() -> None:
    """`all_pages` is keyed by name: two pages of one name would be one rule."""
    assert len(PAGES) == len(list(folder().glob("*/*.md")))


def test_codes_names_and_aliases_are_unique() -> None:
    spellings = [spelling.lower() for page in PAGES for spelling in (page.code, page.name, *page.aliases)]
    assert sorted(spellings) == sorted(set(spellings))


def code_belongs_to_the_family(page: Page) -> None:
    prefix = FAMILIES[page.family].split(" ", 1)[0]
    assert re.fullmatch(prefix + r"\d\d", page.code)
    assert page.path.stem == page.name


def name_names_the_fault(page: Page) -> None:
    assert NAME.fullmatch(page.name)
    assert not page.name.startswith(ADVICE)


def headings_are_all_there_and_in_order(page: Page) -> None:
    body = page.path.read_text("utf-8").split("---\n", 2)[2]
    prose = re.sub(r"^```.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^# (.*)$", prose, re.MULTILINE) == [f"{page.name} ({page.code})"]
    wanted = [heading for heading in HEADINGS if heading != "Fix safety" or page.fix]
    assert re.findall(r"^##+ (.*)$", prose, re.MULTILINE) == wanted
    for heading in wanted:
        section = body.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
        assert section.strip(), f"nothing under {heading}"


def claim_is_one_finished_sentence(page: Page) -> None:
    assert page.title.endswith(".")
    assert "TODO" not in page.path.read_text("utf-8")


def front_matter_has_no_empty_value(page: Page) -> None:
    front = page.path.read_text("utf-8").split("---\n", 2)[1]
    values = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", front, re.MULTILINE))
    assert all(values.values()), [key for key, value in values.items() if not value]
    assert re.fullmatch(r"[a-z][a-z0-9-]*", values["confirm"])


def references_are_links(page: Page) -> None:
    references = page.path.read_text("utf-8").rpartition("## References\n")[2]
    lines = [line for line in references.splitlines() if line.startswith("- ")]
    assert lines
    assert all("https://" in line for line in lines)


def the_needs_of_the_page_parse(page: Page) -> None:
    assert parse_needs(page.needs.text) == page.needs


def page_has_bad_and_good_examples(page: Page) -> None:
    kinds = {example.kind for example in examples(page)}
    assert kinds == {"bad", "good"}
    right, _, rest = page.path.read_text("utf-8").split("## When it is right\n", 1)[1].partition("\n## ")
    assert "```python good" in right
    assert "```python" not in rest, "examples stand under the two headings that speak of them"


def fix_is_promised_where_one_is_shown(page: Page) -> None:
    shown = any(example.fixed for example in examples(page))
    assert shown == (page.fix is not None)


def needs_are_written_by_hand_only_where_events_do_not_tell(page: Page) -> None:
    """A check that asks nothing but events of training is asked wherever they happen."""
    check = check_of(page)
    text = "".join(path.read_text("utf-8") for path in files_of(page))
    asks_more = any(name.startswith("visit_") for name in dir(check)) or ".calls" in text
    asks_more |= any(getattr(check, name) != getattr(Check, name) for name in _MORE)
    kinds = events_of(page.check_module)
    assert page.needs.are_events == (bool(kinds) and kinds.isdisjoint(OF_ANY_PROGRAM) and not asks_more)


_MORE = ("asks_passes", "asks_rest", "users_with", "wants_passes", "wants_rest", "wants_users")


def files_of(page: Page) -> list[Path]:
    """The modules of a check."""
    path = CHECKS.joinpath(*page.check_module.split(".")[2:])
    return [*path.rglob("*.py")] if path.is_dir() else [path.with_suffix(".py")]


def every_bad_example_meets_the_needs(page: Page) -> None:
    if page.needs.are_events:
        return
    assert page.needs.words(), "a rule without needs makes every file be parsed"
    for example in examples(page):
        if example.kind != "bad":
            continue
        for name in {mark.file for mark in example.marks if not mark.todo}:
            shown = [mark for mark in example.marks if mark.file == name and not _ELSEWHERE.search(mark.message)]
            texts = (
                [example.files[name]] if shown else example.files.values()
            )  # what it does elsewhere is asked there, too
            text = Text("\n".join(texts), *NOTEBOOK[: name.endswith(".ipynb")])
            assert page.needs.met(text), f"line {example.line}, {name}"


def needs_are_not_met_by_plain_python(page: Page) -> None:
    """`open` or `lambda` alone would have most files parsed that have nothing to do with training."""
    assert not page.needs.met(Text(" ".join([*keyword.kwlist, *dir(builtins), "save", "dump", "write", "path"])))


def check_keeps_no_state(page: Page) -> None:
    check_class = check_of(page)
    visits = [name for name in dir(check_class) if name.startswith("visit_")]
    assert visits or check_class.rehearse is not Check.rehearse
    assert all(issubclass(getattr(cst, name.removeprefix("visit_")), cst.CSTNode) for name in visits)
    assert check_class.__init__ is Check.__init__  # the runs of the pages' examples look at what it sets later
    kept = {name: value for name, value in vars(check_class).items() if not name.startswith("__")}
    assert not [name for name, value in kept.items() if isinstance(value, cached_property | list | dict | set)]


def check_imports_no_other_check(page: Page) -> None:
    spec = find_spec(page.check_module)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lightlint.checks"):
            assert f"{node.module}.".startswith(f"{page.check_module}."), f"{page.name} imports {node.module}"


FORM = (
    code_belongs_to_the_family,
    name_names_the_fault,
    headings_are_all_there_and_in_order,
    claim_is_one_finished_sentence,
    front_matter_has_no_empty_value,
    references_are_links,
    the_needs_of_the_page_parse,
)
OF_RULES = (
    page_has_bad_and_good_examples,
    fix_is_promised_where_one_is_shown,
    needs_are_written_by_hand_only_where_events_do_not_tell,
    every_bad_example_meets_the_needs,
    needs_are_not_met_by_plain_python,
    check_keeps_no_state,
    check_imports_no_other_check,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_keeps_the_form(page: Page) -> None:
    """All that is asked of one page, in one test: thousands of small ones cost the run more than what they check."""
    for holds in FORM:
        holds(page)


@pytest.mark.parametrize("page", RULES, ids=lambda page: page.name)
def test_page_and_check_of_a_rule_keep_the_form(page: Page) -> None:
    for holds in OF_RULES:
        holds(page)


@pytest.mark.parametrize(
    ("text", "words", "met"),
    [
        ("a", {"a"}, True),
        ("a & b", {"a"}, False),
        ("a | b & c", {"a"}, True),
        ("a | b & c", {"b"}, False),
        ("(a | b) & c", {"a"}, False),
        ("(a | b) & c", {"b", "c"}, True),
        ("*", set(), True),
    ],
)
def test_needs_are_read_with_the_usual_precedence(text: str, words: set[str], met: bool) -> None:
    assert parse_needs(text).met(Text(" ".join(words))) is met


TWO_FUNCTIONS = """
total: int = use(kept = 1) == x.y . z

@decorate
def first(x):
    for row in x:
        row . backward \\
   ()

class Second:
    def step(self):
        try:
            async_step(1)
        except ValueError:
            while self: pass
"""


@pytest.mark.parametrize(
    ("needs", "met"),
    [
        ("def(first & backward)", True),
        ("def(decorate & backward)", True),
        ("def(backward & async_step)", False),
        ("class(async_step)", True),
        ("class(backward)", False),
        ("loop(row & backward)", True),
        ("loop(first)", False),
        ("loop(def(row))", False),
        ("subclass(step)", False),
        ("class(step & !row)", True),
        ("class(step & !ValueError)", False),
        (".backward", True),
        (".backward()", True),
        ("backward()", True),
        (".async_step", False),
        (".async_step()", False),
        ("row()", False),
        ("row=", False),
        ("total=", True),
        ("kept=", True),
        (".total=", False),
        (".kept=", False),
        ("row.backward", True),
        ("row.step", False),
        ("y.z & x.y", True),
        ("class(loop(self))", True),
        (r"/\. backward/", True),
        (r"/^def first/", True),
        (r"/^def step/", False),
        (r"class(/^\s+while/)", True),
        (r"/row\.step/ | step", True),
    ],
)
def test_needs_can_ask_for_one_block_and_for_expressions(needs: str, met: bool) -> None:
    assert parse_needs(needs).met(Text(TWO_FUNCTIONS)) is met


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("optimizer.step()", True),
        ("partial(optimizer.step)()", True),
        ("call = optimizer.step\ncall()", True),
        ("{'kept': optimizer.step}['kept']()", True),
        ("getattr(optimizer, 'step')()", True),
        ("self.step = 3", False),
        ("step()", False),
        ("optimizer.step_size()", False),
    ],
)
def test_needs_of_a_method_are_met_where_it_is_handed_on(text: str, met: bool) -> None:
    assert parse_needs(".step()").met(Text(text)) is met


@pytest.mark.parametrize(
    ("bases", "met"),
    [
        ("", False),
        ("object", False),
        ("nn.Module", False),
        ("torch.nn.Module", False),
        ("Base", True),
        ("nn.Module, Base", True),
        ("models.nn.Module", True),
        ("Base[int]", True),
    ],
)
def test_subclasses_are_those_of_other_classes_than_torch_has(bases: str, met: bool) -> None:
    assert parse_needs("subclass(x)").met(Text(f"class A({bases}):\n    x = 1\n")) is met


def test_needs_of_blocks_are_met_by_a_text_that_does_not_parse() -> None:
    assert parse_needs("def(a & b)").met(Text("a = = b"))


@pytest.mark.parametrize(
    "text", ["", "a &", "/(/", "def(a", "def()", "a b", "(a", "a)", "a && b", "a | | b", "!", "a ! b", "a.b.c"]
)
def test_needs_that_do_not_parse_are_told(text: str) -> None:
    with pytest.raises(NeedsError, match="needs"):
        parse_needs(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\ncode", "code", "no front matter"),
        ("tier: warning", "tier: fatal", "fatal"),
        ("since:", "sinse:", "sinse"),
        ("fix: safe\n", "", "fix"),
    ],
)
def test_page_that_breaks_the_form_is_named(old: str, new: str, message: str) -> None:
    page = all_pages()["empty-cache-in-loop"]
    text = page.path.read_text("utf-8")
    with pytest.raises(PageError, match=message) as raised:
        parse_page(page.path, text.replace(old, new, 1))
    assert str(page.path) in str(raised.value)
