"""A module's libcst tree as far as `ast` knows it: all that means something, without space, comments and brackets.

Made of what Python's own parser gives in a tenth of the time that libcst takes (measured: 0.2 and 1.3 s/MB). Fields of space
and punctuation are left unset, so that what asks for them fails rather than goes by something made up. Where a node stands is
known as far as `ast` and the text tell. Checks see the same classes as in a real tree; only f-strings joined with other
strings are one f-string here, and a tuple in brackets as an index is several indices.
"""


class UnsketchableError(Exception):
    """Text that `ast` refuses, or syntax that is too rare to be worth a sketch."""
