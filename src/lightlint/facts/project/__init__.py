"""The files around a file, and what they say: modules, configurations, options, callers."""
