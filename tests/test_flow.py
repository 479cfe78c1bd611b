"""The control-flow graph against hand-written programs and against what random programs do when they run."""

from __future__ import annotations

import itertools
import textwrap
from contextlib import suppress
from dataclasses import dataclass, field

import libcst as cst
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lightlint.facts.code.flow import Flow


def walk(node: cst.CSTNode):
    yield node
    for child in node.children:
        yield from walk(child)


class Program:
    """A function body with every call by its name and every statement at hand."""

    def __init__(self, body: str) -> None:
        self.module = cst.parse_module(
            "async def run():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
        )
        self.function = self.module.body[0]
        self.flow = Flow(self.function)
        self.nodes = list(walk(self.function))

    def calls(self, name: str) -> list[cst.CSTNode]:
        return [node for node in self.nodes if isinstance(node, cst.Call) and self.code(node.func) == name]

    def call(self, name: str) -> cst.CSTNode:
        [node] = self.calls(name)
        return node

    def first(self, kind: type) -> cst.CSTNode:
        return next(node for node in self.nodes if isinstance(node, kind))

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def reaches(self, start: str, goal: str, avoiding: str = "") -> bool:
        return self.flow.reaches(self.call(start), self.calls(goal), avoiding=self.calls(avoiding))

    def conditions(self, name: str) -> list[tuple[str, bool]]:
        return [(self.code(test), outcome) for test, outcome in self.flow.conditions(self.call(name))]


def test_a_straight_line_goes_one_way():
    program = Program("a(); b()\nc()")
    assert program.reaches("a", "c")
    assert not program.reaches("a", "c", avoiding="b")
    assert not program.reaches("c", "a")
    assert not program.reaches("a", "a")


def test_operands_come_before_their_call():
    program = Program("scaler(loss(x), key=b(c())).backward()")
    backward = next(
        node for node in program.nodes if isinstance(node, cst.Call) and program.code(node).endswith("backward()")
    )
    assert program.reaches("c", "b")
    assert program.reaches("loss", "scaler")
    assert program.reaches("loss", "c")
    assert not program.reaches("b", "c")
    assert program.flow.reaches(program.call("scaler"), [backward])
    assert not program.flow.reaches(backward, [program.call("scaler")])


def test_a_value_comes_before_its_target():
    program = Program("d[key()] = value()")
    assert program.reaches("value", "key")
    assert not program.reaches("key", "value")


LOOP = """
for batch in loader():
    {0}
after()
"""


@pytest.mark.parametrize(
    ("body", "again_without"),
    [
        ("zero_grad(); backward(); step()", False),
        ("backward(); step(); zero_grad()", False),
        ("backward(); step()", True),
        ("if x: zero_grad()\n    backward()", True),
        ("if x: zero_grad()\n    else: zero_grad()\n    backward()", False),
        ("if x: continue\n    backward(); zero_grad()", False),
        ("backward()\n    if x: continue\n    zero_grad()", True),
        ("backward()\n    if x: break\n    zero_grad()", False),
        ("backward()\n    if x: return\n    zero_grad()", False),
        ("backward()\n    x and zero_grad()", True),
        ("backward()\n    zero_grad() if x else y", True),
        ("backward()\n    [zero_grad() for o in optimizers]", True),
        ("backward()\n    [o for o in zero_grad()]", False),
        ("backward()\n    with f(): zero_grad()", False),
        ("try: backward()\n    finally: zero_grad()", False),
        ("try:\n        backward()\n        zero_grad()\n    except E: pass", True),
        ("try:\n        backward()\n        zero_grad()\n    except E: raise", False),
        ("with suppress(E):\n        backward()\n        zero_grad()", True),
        ("while True:\n        backward()\n        if x: break\n        zero_grad()\n    zero_grad()", False),
        ("match x:\n        case 1: zero_grad()\n        case _: zero_grad()\n    backward()", False),
        ("match x:\n        case 1: zero_grad()\n        case 2: zero_grad()\n    backward()", True),
        ("match x:\n        case 1 if y: zero_grad()\n        case z: zero_grad()\n    backward()", False),
    ],
)
def test_backward_over_the_back_edge_without_zero_grad(body: str, again_without: bool):
    program = Program(LOOP.format(body))
    backward, zero_grads = program.call("backward"), program.calls("zero_grad")
    loop = program.first(cst.For)
    assert program.flow.reaches(backward, [backward], avoiding=zero_grads) is again_without
    assert program.flow.reaches_in_later_iteration(loop, backward, [backward], avoiding=zero_grads) is again_without
    inner = any(isinstance(node, cst.While) for node in program.nodes)
    assert program.flow.reaches_in_same_iteration(loop, backward, [backward]) is inner


def test_same_and_later_iterations_differ():
    program = Program("for x in y:\n    step()\n    for p in q: clip()\n    backward()")
    outer, inner = [node for node in program.nodes if isinstance(node, cst.For)]
    step, clip, backward = (program.call(name) for name in ("step", "clip", "backward"))
    flow = program.flow
    assert flow.reaches_in_same_iteration(outer, step, [backward])
    assert not flow.reaches_in_same_iteration(outer, backward, [step])
    assert flow.reaches_in_later_iteration(outer, backward, [step])
    assert flow.reaches_in_same_iteration(outer, clip, [clip])
    assert not flow.reaches_in_same_iteration(inner, clip, [clip])
    assert flow.reaches_in_later_iteration(inner, clip, [clip])
    assert not flow.reaches_in_later_iteration(inner, clip, [backward])
    assert not flow.reaches(clip, [clip], avoiding=[outer, inner])


def test_within_leaves_out_ways_around_an_outer_loop():
    program = Program(
        "for e in epochs:\n    zero()\n    for b in loader:\n        backward()\n        if x: break\n        zero()"
    )
    outer, inner = [node for node in program.nodes if isinstance(node, cst.For)]
    backward, zero = program.call("backward"), program.calls("zero")
    assert not program.flow.reaches(backward, [backward], avoiding=zero[1:], within=inner)
    assert program.flow.reaches(backward, [backward], avoiding=zero[1:], within=outer)


def test_loop_points_leave_out_iterable_and_else():
    program = Program("for b in loader():\n    body()\nelse:\n    other()\nafter()")
    points = program.flow.loop_points(program.first(cst.For))
    inside = {
        name: program.flow.point_of(program.call(name)) in points for name in ("loader", "body", "other", "after")
    }
    assert inside == {"loader": False, "body": True, "other": False, "after": False}


def test_else_of_a_loop_runs_unless_it_breaks():
    program = Program("for b in c:\n    body()\n    if x:\n        cut()\n        break\nelse:\n    whole()\nafter()")
    assert program.reaches("body", "whole")
    assert not program.reaches("cut", "whole")
    assert program.reaches("cut", "after")
    assert not program.reaches("body", "after", avoiding="whole") or program.reaches("body", "cut")


def test_an_endless_loop_is_left_by_break_only():
    endless = Program("while True:\n    body()\nafter()")
    assert endless.flow.point_of(endless.call("after")) is None
    assert not endless.reaches("body", "after")
    left = Program("while 1:\n    body()\n    if x: break\nafter()")
    assert left.reaches("body", "after")
    assert left.conditions("after") == [("x", True)]


def test_finally_runs_on_all_ways_and_keeps_them_apart():
    program = Program("""
    for x in y:
        try:
            if a(): continue
            if b(): break
            if c(): return
            d()
        finally:
            last()
        after()
    end()
    """)
    [last] = program.calls("last")
    after, end = program.call("after"), program.call("end")
    assert program.flow.reaches(program.call("d"), [after])
    assert program.flow.conditions(after)[-3:] == tuple((program.call(name), False) for name in "abc")
    assert not program.flow.reaches(program.call("a"), [program.flow.end, after, end], avoiding=[last])
    assert not any(test in program.calls("a") for test, _ in program.flow.conditions(end))


def test_a_jump_in_finally_swallows_the_exception():
    program = Program("for x in y:\n    try:\n        a()\n    finally:\n        continue\nend()")
    assert program.flow.failure not in program.flow.points
    assert program.reaches("a", "end")


def test_handlers_take_what_the_body_raises():
    program = Program("""
    try:
        a()
        b()
    except Value:
        c()
    except Other as error:
        d()
    else:
        e()
    f()
    """)
    for start, goal, expected in [
        ("a", "c", True),
        ("b", "d", True),
        ("c", "d", False),
        ("c", "e", False),
        ("e", "c", False),
        ("c", "f", True),
        ("b", "e", True),
    ]:
        assert program.reaches(start, goal) is expected, (start, goal)
    assert program.reaches("a", "c", avoiding="b")
    assert program.flow.failure in program.flow.points


def test_nothing_passes_a_bare_except():
    program = Program("try:\n    if x: raise E\n    b()\nexcept:\n    a()")
    assert program.flow.failure not in program.flow.points
    assert not program.flow.reaches(program.first(cst.Raise), program.calls("b"))
    assert program.flow.reaches(program.first(cst.Raise), program.calls("a"))


def test_raises_outside_of_try_are_those_in_plain_sight():
    assert Program("a()").flow.failure not in Program("a()").flow.points
    program = Program("if x:\n    sys.exit(a())\nb()")
    assert program.flow.failure in program.flow.points
    assert not program.reaches("a", "b")
    assert program.conditions("b") == [("x", False)]


def test_always_before():
    program = Program("if x:\n    seed()\nelse:\n    seed()\ninit()\nfor a in b:\n    used()")
    assert program.flow.always_before(program.call("used"), program.calls("seed"))
    assert program.flow.always_before(program.call("used"), program.calls("init"))
    assert not program.flow.always_before(program.call("init"), program.calls("used"))


def test_inner_bodies_are_no_part():
    program = Program(
        "@deco()\ndef f(a=default()):\n    inside()\ng = lambda b=other(): inside()\nclass C(base()):\n    inside()\nend()"
    )
    assert all(program.flow.point_of(call) is None for call in program.calls("inside"))
    assert program.reaches("deco", "default")
    assert program.reaches("default", "other")
    assert program.reaches("base", "end")
    assert not program.flow.reaches(program.calls("inside")[0], [program.call("end")])
    assert program.flow.conditions(program.calls("inside")[0]) == ()


def test_statements_stand_for_their_start():
    program = Program("a()\nif x: b()\ntry:\n    c()\nfinally:\n    d()\nwith e(): f()\ng()")
    for kind, inner in [(cst.If, "b"), (cst.Try, "c"), (cst.With, "f")]:
        statement = program.first(kind)
        assert not program.flow.reaches(program.call("a"), program.calls("g"), avoiding=[statement])
        assert program.flow.reaches(statement, program.calls(inner))
    assert program.flow.reaches(program.function.body.body[0], program.calls("g"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if rank == 0: here()", [("rank == 0", True)]),
        ("if rank == 0: pass\nelse: here()", [("rank == 0", False)]),
        ("if a: pass\nelif b: here()", [("a", False), ("b", True)]),
        ("if rank != 0: return\nhere()", [("rank != 0", False)]),
        ("if not main(): return\nhere()", [("main()", True)]),
        ("if rank != 0: raise E\nhere()", [("rank != 0", False)]),
        ("if a:\n    if b: return\n    here()", [("a", True), ("b", False)]),
        ("if a:\n    if b: return\nhere()", []),
        ("if a: x()\nhere()", []),
        ("if a: return\nelse: return\nhere()", []),
        ("for x in y:\n    if a: continue\n    here()", [("a", False)]),
        ("for x in y:\n    if a: break\nhere()", []),
        ("for x in y:\n    if a: return\nhere()", []),
        ("for x in y:\n    if a: break\nelse:\n    here()", []),
        ("while a: here()", [("a", True)]),
        ("while a: x()\nhere()", [("a", False)]),
        ("while a:\n    if b: break\nhere()", []),
        ("assert a\nhere()", [("a", True)]),
        ("assert a, here()", [("a", False)]),
        ("a and here()", [("a", True)]),
        ("a or here()", [("a", False)]),
        ("x = here() if a else y", [("a", True)]),
        ("x = y if a else here()", [("a", False)]),
        ("x = [here() for z in y if a if not b]", [("a", True), ("b", False)]),
        ("x = [z for z in here() if a]", []),
        ("if a and b: here()", [("a", True), ("b", True), ("a and b", True)]),
        ("if a and b: return\nhere()", [("a and b", False)]),
        ("if a or b: return\nhere()", [("a", False), ("b", False), ("a or b", False)]),
        ("if not (a and b): return\nhere()", [("a", True), ("b", True), ("(a and b)", True)]),
        ("if (a or b) and c: here()", [("(a or b)", True), ("c", True), ("(a or b) and c", True)]),
        ("if a and here(): pass", [("a", True)]),
        ("try:\n    if a: return\nfinally:\n    here()", []),
        ("try:\n    x()\nexcept E:\n    return\nhere()", []),
        ("try:\n    if a: return\n    x()\nexcept E:\n    here()", []),
        ("with x:\n    if a: return\nhere()", [("a", False)]),
        ("with suppress(E):\n    if a: raise E\nhere()", []),
        ("match x:\n    case 1 if a: here()", [("a", True)]),
        ("match x:\n    case _ if a: pass\n    case _: here()", [("a", False)]),
    ],
)
def test_conditions(body: str, expected: list[tuple[str, bool]]):
    assert Program(body).conditions("here") == expected


def test_module_and_loop_bodies():
    module = cst.parse_module("if a:\n    b()\nfor x in y:\n    if x: continue\n    c()\nd()\n")
    flow = Flow(module)
    calls = [node for node in walk(module) if isinstance(node, cst.Call)]
    assert [len(flow.conditions(call)) for call in calls] == [1, 1, 0]
    loop = Flow(module.body[1])
    assert loop.point_of(calls[0]) is None
    assert loop.reaches(calls[1], [calls[1]])
    assert loop.reaches(calls[1], [loop.end])


def test_deep_nesting_and_long_chains_do_not_overflow():
    program = Program("x = " + " + ".join(["a"] * 900) + "\nhere()")
    assert program.flow.point_of(program.call("here")) is not None


# ---------------------------------------------------------------------------------------------- random programs, run

LIMIT = 60  # marks and decisions before a run is cut


class FaultError(Exception):
    pass


class CutError(BaseException):
    pass


@dataclass
class Run:
    """Runs a program by a list of decisions and records marks, loop heads and how it ended."""

    decisions: list[int]
    needed: int = 0
    trace: list[tuple[str, int]] = field(default_factory=list)
    last: dict[int, bool] = field(default_factory=dict)
    seen: list[tuple[int, dict[int, bool]]] = field(default_factory=list)
    ended: str = ""

    def draw(self) -> int:
        if self.needed >= len(self.decisions) or len(self.trace) > LIMIT:
            raise CutError
        self.needed += 1
        return self.decisions[self.needed - 1]

    def mark(self, number: int) -> bool:
        self.trace.append(("mark", number))
        self.seen.append((number, dict(self.last)))
        if len(self.trace) > LIMIT:
            raise CutError
        return True

    def risky(self, number: int) -> bool:
        fault = self.draw() % 4
        if fault == 2:
            raise FaultError
        self.mark(number)
        if fault == 3:
            raise FaultError
        return True

    def decide(self, number: int) -> bool:
        self.last[number] = bool(self.draw() % 2)
        return self.last[number]

    def turns(self, number: int):
        while True:
            self.trace.append(("head", number))
            if not self.draw() % 2:
                return
            yield None


@st.composite
def programs(draw, with_try: bool, size: int):
    """Source of a function `run` of marks, numbered from 0, and decisions."""
    marks, tests, loops = itertools.count(), itertools.count(), itertools.count()
    budget = [size]

    def mark(tried: bool) -> str:
        return f"{'risky' if tried else 'mark'}({next(marks)})"

    def test(depth: int = 2) -> str:
        kind = draw(st.sampled_from(["plain", "plain", "plain", "not", "and", "or"])) if depth else "plain"
        if kind == "plain":
            return f"decide({next(tests)})"
        if kind == "not":
            return f"not {test(depth - 1)}" if depth > 1 else f"(not decide({next(tests)}))"
        left = test(depth - 1)
        return f"({left} {kind} {test(depth - 1)})"

    def block(depth: int, tried: bool, looped: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(draw(st.integers(1, 3))):
            lines += statement(depth, tried, looped)
        return ["    " + line for line in lines]

    def statement(depth: int, tried: bool, looped: bool) -> list[str]:
        budget[0] -= 1
        simple = ["mark", "mark", "mark", "and", "either", "comprehension", "return", "assert"] + (
            ["break", "continue"] if looped else []
        )
        nested = ["if", "if", "for", "while", "endless", "match"]
        if with_try:
            simple += ["raise"]
            nested += ["try", "try", "finally", "suppress"]
        kind = draw(st.sampled_from(simple + nested * 2 if depth and budget[0] > 0 else simple))
        match kind:
            case "mark":
                return [mark(tried)]
            case "and":
                return [f"{test()} {draw(st.sampled_from(['and', 'or']))} {mark(tried)}"]
            case "either":
                return [f"{mark(tried)} if {test()} else {mark(tried)}"]
            case "comprehension":
                return [f"[{mark(tried)} for _ in turns({next(loops)}) if {test()}]"]
            case "return" | "assert":
                return [f"if {test()}: return", mark(tried)] if kind == "return" else [f"assert {test()}"]
            case "break" | "continue":
                return [f"if {test()}:", f"    {mark(tried)}", f"    {kind}"]
            case "raise":
                return [f"if {test()}: raise FaultError"]
            case "if":
                lines = [f"if {test()}:", *block(depth - 1, tried, looped)]
                if draw(st.booleans()):
                    lines += [f"elif {test()}:", *block(depth - 1, tried, looped)]
                return [*lines, "else:", *block(depth - 1, tried, looped)] if draw(st.booleans()) else lines
            case "for":
                lines = [f"for _ in turns({next(loops)}):", *block(depth - 1, tried, True)]
                return [*lines, "else:", *block(depth - 1, tried, looped)] if draw(st.booleans()) else lines
            case "while":
                return [f"while {test()}:", *block(depth - 1, tried, True)]
            case "endless":
                return ["while True:", *block(depth - 1, tried, True), f"    if {test()}: break"]
            case "match":
                return [
                    "match 1:",
                    f"    case _ if {test()}:",
                    *["    " + line for line in block(depth - 1, tried, looped)],
                    "    case _:",
                    f"        {mark(tried)}",
                ]
            case "try":
                lines = ["try:", *block(depth - 1, True, looped)]
                if draw(st.booleans()):
                    lines += ["except KeyError:", f"    {mark(tried)}"]
                lines += ["except FaultError:", *block(depth - 1, tried, looped)]
                if draw(st.booleans()):
                    lines += ["else:", *block(depth - 1, tried, looped)]
                return [*lines, "finally:", *block(0, tried, False)] if draw(st.booleans()) else lines
            case "finally":
                return ["try:", *block(depth - 1, True, looped), "finally:", f"    {mark(tried)}"]
            case _:
                return ["with suppress(FaultError):", *block(depth - 1, True, looped)]

    source = "def run():\n" + "\n".join(block(3, False, False)) + "\n"
    assume(next(marks) > 1)
    return source


def run_once(source: str, decisions: list[int]) -> Run:
    run = Run(list(decisions))
    space = {"mark": run.mark, "risky": run.risky, "decide": run.decide, "turns": run.turns}
    space |= {"FaultError": FaultError, "suppress": suppress}
    exec(source, space)
    try:
        space["run"]()
        run.ended = "end"
    except (FaultError, AssertionError):
        run.ended = "failure"
    except CutError:
        run.ended = "cut"
    return run


class Checked:
    """The flow of a random program, with its numbered calls."""

    def __init__(self, source: str) -> None:
        self.module = cst.parse_module(source)
        self.flow = Flow(self.module.body[0])
        self.marks: dict[int, cst.CSTNode] = {}
        self.tests: dict[int, cst.CSTNode] = {}
        self.loops: dict[int, tuple[cst.For, set[int]]] = {}
        for node in walk(self.module):
            if isinstance(node, cst.Call) and node.func.value in {"mark", "risky", "decide"}:
                numbered = self.tests if node.func.value == "decide" else self.marks
                numbered[int(node.args[0].value.value)] = node
            if isinstance(node, cst.For):
                inside = {
                    int(call.args[0].value.value)
                    for call in walk(node.body)
                    if isinstance(call, cst.Call) and call.func.value in {"mark", "risky"}
                }
                self.loops[int(node.iter.args[0].value.value)] = (node, inside)

    def follows(self, start, goal) -> bool:
        return self.flow.reaches(start, [goal], avoiding=[node for node in self.marks.values() if node is not goal])

    def holds(self, test: cst.CSTNode, last: dict[int, bool]) -> bool:
        return bool(eval(self.module.code_for_node(test), {"decide": last.__getitem__}))


often_refused = settings(
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example]
)


@often_refused
@given(
    programs(with_try=True, size=12),
    st.lists(st.lists(st.integers(0, 3), min_size=10, max_size=60), min_size=3, max_size=8),
)
def test_what_happens_is_a_way_of_the_graph(source: str, runs: list[list[int]]):
    program = Checked(source)
    for decisions in runs:
        run = run_once(source, decisions)
        previous, heads = program.flow.start, []
        for kind, number in [*run.trace, ("stop", 0)]:
            if kind == "head":
                heads.append(number)
                continue
            if kind == "stop":
                if run.ended != "cut":
                    goal = program.flow.end if run.ended == "end" else program.flow.failure
                    assert program.follows(previous, goal)
                break
            here = program.marks[number]
            assert program.follows(previous, here)
            for label, (loop, inside) in program.loops.items():
                if number in inside and any(previous is program.marks[other] for other in inside):
                    others = [node for node in program.marks.values() if node is not here]
                    if label not in heads:
                        assert program.flow.reaches_in_same_iteration(loop, previous, [here], others)
                    elif len(program.loops) == 1 and "while" not in source:
                        assert program.flow.reaches_in_later_iteration(loop, previous, [here], others)
            previous, heads = here, []
        for number, last in run.seen:
            for test, outcome in program.flow.conditions(program.marks[number]):
                assert program.holds(test, last) is outcome


def all_runs(source: str, depth: int):
    """Every run of at most `depth` decisions, those that are cut included."""
    pending: list[list[int]] = [[]]
    while pending:
        run = run_once(source, decisions := pending.pop())
        yield run
        if run.ended == "cut" and run.needed == len(decisions) < depth:
            pending += [[*decisions, 0], [*decisions, 1]]


@often_refused
@given(programs(with_try=False, size=5))
def test_what_the_graph_allows_happens(source: str):
    assume(source.count("decide") + source.count("turns") <= 5)
    program = Checked(source)
    follows: set[tuple[int, int]] = set()
    outcomes: dict[int, list[dict[int, bool]]] = {}
    for run in all_runs(source, 11):
        numbers = [number for kind, number in run.trace if kind == "mark"]
        follows |= set(itertools.pairwise([-1, *numbers]))
        for number, last in run.seen:
            outcomes.setdefault(number, []).append(last)
    for number, here in program.marks.items():
        for start, previous in [(-1, program.flow.start), *program.marks.items()]:
            assert program.follows(previous, here) is ((start, number) in follows)
        known = dict(program.flow.conditions(here))
        for label, test in program.tests.items():
            seen = {last.get(label) for last in outcomes.get(number, [{}])}
            if len(seen) == 1 and None not in seen:
                assert known[test] is seen.pop()
            else:
                assert test not in known
