"""Edits of one kind of code each, in the layout that the code has."""
