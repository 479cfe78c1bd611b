"""The parts of the language, and how each is run."""
