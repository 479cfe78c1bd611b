"""Processes, signals and folders of a run, as the operating system has them."""
