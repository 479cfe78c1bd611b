"""Starts the recording in every Python process of the run, then does what the next `sitecustomize` on the path does.

Python imports this by name because the launcher put its directory first on PYTHONPATH.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _package():
    """Make `lightlint` importable without putting anything else of its environment on the user's path."""
    if "lightlint" in sys.modules or importlib.util.find_spec("lightlint") is not None:
        return
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = importlib.util.spec_from_file_location(
        "lightlint", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    sys.modules["lightlint"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _record():
    try:
        _package()
        from lightlint.confirm.boot import begin

        begin()
    except Exception as error:
        sys.stderr.write(f"lightlint: cannot record this process: {type(error).__name__}: {error}\n")


def _next():
    """Run the `sitecustomize` that this one hides: Debian and others have one."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


_record()
_next()
