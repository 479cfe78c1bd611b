"""How far forecasts are from what a GPU says: runs each program of `zoo.py` twice, without and with the GPU.

`python tests/benchmarks/forecast.py` on a machine with one GPU, with torch, torchvision, timm and transformers; prints a
Markdown table of every row, also the bad ones.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
MIB = 2**20
_AT_ONCE = 5  # forecasts side by side; measurements have the GPU to themselves


def forecast(name: str) -> tuple[int | None, float, str]:
    """Bytes that the forecast says will be allocated, the seconds it took, and its problem. It sees no GPU."""
    began = time.perf_counter()
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "lightlint",
            "forecast",
            "--output-format",
            "json",
            "--",
            sys.executable,
            str(HERE / "zoo.py"),
            name,
        ],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if not ran.stdout.startswith("{"):
        return None, seconds, ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"status {ran.returncode}"
    found = json.loads(ran.stdout)
    return found["allocated"], seconds, found["problem"]


def measure(name: str) -> tuple[int | None, int | None, str]:
    """Bytes that were allocated and reserved on the GPU."""
    ran = subprocess.run([sys.executable, str(HERE / "zoo.py"), name], capture_output=True, text=True, check=False)
    found = re.search(r"peak (\d+) reserved (\d+)", ran.stdout)
    if found is None:
        return None, None, (ran.stderr.strip().splitlines() or ["no output"])[-1]
    return int(found[1]), int(found[2]), ""


def main() -> None:
    import torch
    from zoo import NAMES

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}\n")
    print(
        "| program | measured MiB | forecast MiB | ratio | reserved / allocated | forecast s |\n|---|---|---|---|---|---|"
    )
    ratios = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        forecasts = list(pool.map(forecast, NAMES))
    for name, (said, seconds, problem) in zip(NAMES, forecasts, strict=True):
        was, reserved, failed = measure(name)
        if said is None or was is None or reserved is None:
            print(f"| {name} | {was or failed} | {said or problem} | | | {seconds:.1f} |", flush=True)
            continue
        ratios.append(said / was)
        note = f" ({problem})" if problem else ""
        print(
            f"| {name}{note} | {was / MIB:.0f} | {said / MIB:.0f} | {said / was:.3f} | {reserved / was:.2f} | {seconds:.1f} |",
            flush=True,
        )
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    print(f"\n{len(errors)} programs: median error {statistics.median(errors):.1%}, worst {errors[-1]:.1%}")


if __name__ == "__main__":
    main()
