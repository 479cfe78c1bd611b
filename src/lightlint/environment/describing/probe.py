"""Describes the environment of the Python that runs it, as JSON on standard output: `python probe.py`.

Stands alone, so that it can be run by another interpreter than lightlint's, or copied to a machine without lightlint.
No secrets and no user's name: variables by an allow-list, no paths.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from typing import Any, Callable, Mapping  # noqa: UP035  # also read by Pythons that lightlint does not run on

SCHEMA = 1
VARIABLES = re.compile(
    r"(?:CUDA|NCCL|TORCH|PYTORCH|PL|OMP|MKL|OPENBLAS|CUBLAS|CUDNN|GLOO|XLA|HSA|ROCR|HIP)_[A-Z0-9_]+"
    r"|PYTHON(?:HASHSEED|UNBUFFERED|NOUSERSITE|OPTIMIZE|UTF8)|WORLD_SIZE|RANK|LOCAL_RANK|SLURM_(?:NTASKS|NNODES|JOB_NUM_NODES)"
)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH")
MIB = 2**20


def describe() -> dict[str, Any]:
    """Everything, as a dictionary that `json` can write. What cannot be found out is None."""
    return {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "packages": packages(),
        "imports": imports(),
        "torch": torch(),
        "gpus": gpus(),
        "memory_mib": memory(),
        "memory_limit_mib": memory_limit(),
        "shared_memory_mib": free("/dev/shm"),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "start_method": start_method(),
        "variables": variables(os.environ),
        "notebook": notebook(),
        "filesystem": filesystem(),
    }


def packages() -> dict[str, str]:
    """Version by normalised distribution name."""
    from importlib import metadata

    found: dict[str, str] = {}
    for each in metadata.distributions():
        name = each.metadata["Name"]
        if name:
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), each.version)
    return dict(sorted(found.items()))


def imports() -> dict[str, str]:
    """Distribution by imported name, where the two differ."""
    from importlib import metadata

    if not hasattr(metadata, "packages_distributions"):  # Python 3.9
        return {}
    found = {}
    for name, owners in metadata.packages_distributions().items():
        owner = re.sub(r"[-_.]+", "-", owners[0]).lower()
        if not name.startswith("_") and re.sub(r"[-_.]+", "-", name).lower() != owner:
            found[name] = owner
    return dict(sorted(found.items()))


def torch() -> dict[str, Any] | None:
    """torch's build and flags, None where it is not installed or cannot be imported; then `error` says why."""
    try:
        import torch as module
    except ImportError as error:
        return None if isinstance(error, ModuleNotFoundError) and error.name == "torch" else {"error": pathless(error)}
    except Exception as error:
        return {"error": pathless(error)}
    version, backends = module.version, module.backends
    return {
        "version": module.__version__,
        "cuda": getattr(version, "cuda", None),
        "hip": getattr(version, "hip", None),
        "cudnn": attempt(lambda: backends.cudnn.version()),
        "nccl": attempt(lambda: ".".join(map(str, module.cuda.nccl.version()))),
        "cuda_available": attempt(module.cuda.is_available),
        "mps_available": attempt(lambda: backends.mps.is_available()),
        "devices": attempt(lambda: [module.cuda.get_device_name(each) for each in range(module.cuda.device_count())]),
        "capability": attempt(
            lambda: list(module.cuda.get_device_capability()) if module.cuda.is_available() else None
        ),
        "default_dtype": str(module.get_default_dtype()),
        "float32_matmul_precision": attempt(module.get_float32_matmul_precision),
        "cudnn_benchmark": attempt(lambda: backends.cudnn.benchmark),
        "cudnn_deterministic": attempt(lambda: backends.cudnn.deterministic),
        "allow_tf32": attempt(lambda: backends.cuda.matmul.allow_tf32),
        "deterministic_algorithms": attempt(module.are_deterministic_algorithms_enabled),
        "threads": attempt(module.get_num_threads),
    }


def pathless(error: Exception) -> str:
    """An error in one line, without the paths in it: they name users."""
    line = (str(error).splitlines() or [""])[0]
    return re.sub(r"\[?'?[^\s'\"]*/[^,\]]*[,\]]?", "...", f"{type(error).__name__}: {line}")[:200]


def attempt(ask: Callable[[], Any]) -> Any:
    """What a question gives, None where it fails: old versions lack it, machines too."""
    try:
        return ask()
    except Exception:
        return None


def gpus() -> list[dict[str, Any]]:
    """The machine's NVIDIA GPUs as `nvidia-smi` lists them; empty where there is none."""
    query = "name,memory.total,driver_version,mig.mode.current"
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(", ") for line in listed.stdout.decode(errors="replace").splitlines()]
    return [
        {"name": row[0], "memory_mib": int(row[1]), "driver": row[2], "mig": row[3].strip() == "Enabled"}
        for row in rows
        if len(row) == 4 and row[1].isdigit()
    ]


def memory() -> int | None:
    """The machine's memory in MiB."""
    found: int | None = attempt(lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB)
    return found


def memory_limit() -> int | None:
    """What the control group allows in MiB, None where it sets no limit."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 2**50:
            return int(text) // MIB
    return None


def free(path: str) -> int | None:
    """Size of a file system in MiB, None where there is none such."""
    try:
        found = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return found.f_frsize * found.f_blocks // MIB


def usable_cores() -> int | None:
    """Cores that this process may use: affinity, and the control group's share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return cores
    return min(cores or 1, max(1, round(int(quota) / int(period)))) if quota.isdigit() else cores


def start_method() -> str:
    """How multiprocessing starts processes here."""
    import multiprocessing

    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that matter to training, never one that may hold a secret."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if VARIABLES.fullmatch(name) and not SECRET.search(name) and "/" not in value and "@" not in value
    }


def notebook() -> str | None:
    """The notebook host, None where there is none."""
    if "COLAB_RELEASE_TAG" in os.environ or "COLAB_GPU" in os.environ:
        return "colab"
    if "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
        return "kaggle"
    return "jupyter" if "JPY_PARENT_PID" in os.environ else None


def filesystem() -> str | None:
    """The type of the file system that the working directory lies on."""
    try:
        with open("/proc/mounts") as file:
            mounts = [line.split()[1:3] for line in file]
    except (OSError, IndexError):
        return None
    here = os.path.realpath(".")
    above = [(len(at), kind) for at, kind in mounts if here == at or here.startswith(at.rstrip("/") + "/")]
    return max(above)[1] if above else None


if __name__ == "__main__":
    json.dump(describe(), sys.stdout, indent=1)
    sys.stdout.write("\n")
