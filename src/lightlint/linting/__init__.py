"""One file, from its text to its findings."""
