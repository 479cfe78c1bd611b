"""Random small programs that print all they do, so that a rewritten one can be compared by running it."""

from __future__ import annotations

import re
import textwrap

from hypothesis import strategies as st

HEAD = '''
import math
import collections as col
from functools import reduce
from math import sqrt


class Gauge:
    """Counts and says so."""

    scale = 2

    def __init__(self, start=1, *, step=1):
        self.value = start
        self.step = step
        self.log = []

    def add(self, amount, times=1):
        if amount > 1:
            self.value += amount * times
        print("add", amount, times, self.value)
        self.log.append(self.value)
        return self

    def read(self) -> int:
        print("read", self.value)
        return self.value

    @property
    def double(self):
        return self.value * 2

    def __enter__(self):
        print("enter", self.value)
        return self

    def __exit__(self, *error):
        print("exit", error[0])
        return False

    def __len__(self):
        return 3


class Fine(Gauge):
    def add(self, amount, times=1):
        found = super().add(amount + 1, times)
        print("fine")
        return found

    def tidy(self):
        kept: int = self.read()
        self.value = kept % 7
        print(kept)

    @staticmethod
    def half(number):
        return number // 2


class Bag(col.Counter):
    def add_all(self, items: list) -> None:
        for item in items:
            self[item] += 1


def noted(function):
    def call(*given, **named):
        print("call", function.__name__)
        return function(*given, **named)

    return call


def double(number):
    return number * 2


@noted
def combine(first, second=2, third=3):
    print("combine", first, second, third)
    return first + second * third
'''

_NUMBERS = (
    "{n}",
    "3",
    "double({x})",
    "combine({x}, {y})",
    "combine({x}, third={y})",
    "gauge.add({x}).read()",
    "gauge.read()",
    "gauge.double",
    "{x} + {y}",
    "int(sqrt(abs({x})))",
    "reduce(lambda a, b: a + b, [{x}, {y}])",
    "len(col.Counter([{x}, {y}]))",
    "sum(each + 1 for each in [{x}, {y}])",
    "math.floor({x})",
    "max([{x}, {y}], key=lambda item: -item)",
    "({x} if {y} > 4 else {n})",
)
_SIMPLE = (
    "a = {x}",
    "b = {x}",
    "a = {x}\nb = {y}",
    "a, b = {x}, {y}",
    "c += {x}",
    "gauge.add({x}, times=2)",
    "gauge.add(abs({x}) % 5).add({y})",
    "gauge.value = {x}",
    "print({x}, 'seen_here')",
    "gauge = Fine(start={x} % 9, step=2)",
    "made = combine({x}, second=4)\nprint(made)",
    "items = [{x}, {y}]\nprint(items)",
    "print(getattr(gauge, 'val_or_none', None))",
)
_BLOCKS = (
    "for i in range(3):",
    "for item in [a, b, {x}]:",
    "for number, item in enumerate([{x}, b]):",
    "if {x} > {y}:",
    "if a > 2 and b < {x}:",
    "if not a:",
    "with gauge:",
    "with Gauge({x} % 5) as other:",
    "try:",
    "while c < 5:\n    c += 1",
)
_LEAVES = ("if {n} > 40:\n    continue", "if {n} > 90:\n    break", "print(i_of_loop := {n})")


@st.composite
def _number(draw: st.DrawFn, depth: int) -> str:
    form = draw(st.sampled_from(_NUMBERS if depth else _NUMBERS[:2]))
    inner = _number(max(depth - 1, 0))
    return form.format(
        n=draw(st.sampled_from("abc")), x=draw(inner) if "{x}" in form else "", y=draw(inner) if "{y}" in form else ""
    )


@st.composite
def _block(draw: st.DrawFn, depth: int, in_loop: bool) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        pick = draw(st.integers(0, 9))
        words = {"x": draw(_number(2)), "y": draw(_number(1)), "n": draw(st.sampled_from("abc"))}
        if pick < 4 and depth:
            head = draw(st.sampled_from(_BLOCKS)).format(**words)
            body = draw(_block(depth - 1, in_loop or head.startswith(("for", "while"))))
            parts.append(f"{head}\n{textwrap.indent(body, '    ')}")
            if head == "try:":
                parts.append("except ValueError as error:\n    print(error)")
            elif head.startswith("if") and draw(st.booleans()):
                parts.append("else:\n    print('otherwise')")
        elif pick == 4 and in_loop:
            parts.append(draw(st.sampled_from(_LEAVES)).format(**words))
        else:
            parts.append(draw(st.sampled_from(_SIMPLE)).format(**words))
    return "\n".join(parts)


@st.composite
def running_programs(draw: st.DrawFn) -> str:
    """A program of a few functions and some statements of the module's own."""
    work = textwrap.indent(draw(_block(3, in_loop=False)), "    ")
    more = textwrap.indent(draw(_block(2, in_loop=False)), "    ")
    top = re.sub(r"\b[abc]\b", lambda name: "pqr"["abc".index(name[0])], draw(_block(2, in_loop=False)))
    return (
        f"{HEAD}\n\ndef work(gauge, a, b=2, c=0):\n{work}\n    print(a, b, c)\n    return a + b\n\n\n"
        f"def more(gauge, a, b, c):\n    result = work(gauge, a)\n{more}\n    return result\n\n\n"
        f"gauge = Gauge(step=3)\np, q, r = 1, 2, 3\nbag = Bag()\nbag.add_all([p, q])\n{top}\n"
        "print(work(gauge, p, q), more(gauge, 2, q, 1), bag)\n"
    )
