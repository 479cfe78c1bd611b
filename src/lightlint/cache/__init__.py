"""Findings that stand from an earlier run: what they hang on, and the files they are kept in."""
