"""A run over many files: what is new, who lints what, and what comes of it."""
