"""Functions and methods of libraries that write a file, and which argument names it: its position and keyword."""

from __future__ import annotations

FUNCTIONS: dict[str, tuple[int, str]] = {
    "numpy.save": (0, "file"),
    "numpy.savez": (0, "file"),
    "numpy.savez_compressed": (0, "file"),
    "numpy.savetxt": (0, "fname"),
    "matplotlib.pyplot.savefig": (0, "fname"),
    "torchvision.utils.save_image": (1, "fp"),
    "joblib.dump": (1, "filename"),
}
METHODS: dict[str, str] = {
    "to_csv": "path_or_buf",
    "to_parquet": "path",
    "to_pickle": "path",
    "to_excel": "excel_writer",
    "savefig": "fname",
}
"""The keyword of the first argument."""


def spelled(path: str) -> str:
    """A function as a message calls it."""
    return path.replace("matplotlib.pyplot", "plt").replace("numpy.", "np.")
