"""Hooks that Lightning calls."""
