"""Programs rewritten into equivalent ones: what is found must be found however it is spelt, and silence must last.

`python -m tests.metamorphic` measures the examples of the rule pages and shows the table of `survival.md`.
"""
