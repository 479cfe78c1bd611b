"""Measures what the rule pages promise in numbers, and prints it as a Markdown table.

    python tests/benchmarks/promises.py [--device cpu|cuda] [--ranks 2]

Needs torch, and nvidia-ml-py for GPUs; the rows about ranks start that many processes (gloo on the CPU, NCCL on GPUs, which
they share where there are fewer). Every row is
measured in this run: the pages name the machine and the versions that stand above the table. Memory on the CPU is what
malloc has lent out, so it needs Linux with glibc 2.33 or later; resident memory tells the allocator's gaps as well.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

Row = tuple[str, str, str]
WARM_UP, STEPS = 10, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{os.cpu_count()} cores of {_processor()}"
    print(f"{where}, torch {torch.__version__}, Python {platform.python_version()}\n")
    print("| page | case | measured |\n| --- | --- | --- |")
    parts: list[Iterator[Row]] = [losses(), kept_graphs(options.device)]
    if options.device == "cuda":
        parts += [empty_cache(), waits(), contexts()]
    parts.append(ranks(options.device, options.ranks))
    for part in parts:
        for row in part:
            print("| " + " | ".join(row) + " |", flush=True)


def _processor() -> str:
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def losses() -> Iterator[Row]:
    """The lowest loss that a perfect prediction can reach."""
    perfect = functional.one_hot(torch.arange(10)).float() * 1e4
    target = torch.arange(10)
    floor = functional.cross_entropy(perfect.softmax(1), target)
    yield "softmax-before-cross-entropy", "10 classes, all right", f"loss {floor.item():.4f}"
    twice = functional.cross_entropy((perfect[:, :5]).log_softmax(1), target % 5)
    yield (
        "softmax-before-cross-entropy",
        "log_softmax instead",
        f"difference {abs(twice - functional.cross_entropy(perfect[:, :5], target % 5)).item():.1e}",
    )
    sure = torch.full((4,), 1e4)
    for name, labels in (("positives", torch.ones(4)), ("negatives", torch.zeros(4))):
        logits = sure if name == "positives" else -sure
        floor = functional.binary_cross_entropy_with_logits(logits.sigmoid(), labels)
        yield "sigmoid-before-bce-with-logits", f"{name}, all right", f"loss {floor.item():.4f}"


def kept_graphs(device: str) -> Iterator[Row]:
    """Memory that stays per step, by what is kept."""
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.ReLU())]).to(device)
    batch = torch.randn(128, 256, device=device)

    def after_backward() -> torch.Tensor:
        loss = model(batch).mean()
        loss.backward()
        return loss

    def detached() -> torch.Tensor:
        return after_backward().detach()

    def auxiliary() -> torch.Tensor:
        output = model(batch)
        other = output.square().mean()
        output.mean().backward()
        return other

    def another_pass() -> torch.Tensor:
        model(batch).mean().backward()
        return model(batch).square().mean()

    cases: dict[str, Callable[[], torch.Tensor]] = {
        "`total += loss` after `backward()` on it": after_backward,
        "`total += loss.detach()`": detached,
        "`total += loss` without `backward()` and without `no_grad`": lambda: model(batch).mean(),
        "`total += other` that is not in the loss, of the same output": auxiliary,
        "`total += other` that is not in the loss, of another forward pass": another_pass,
    }
    for name, step in cases.items():
        yield "graph-kept-by-accumulation", name, f"{_growth(step, device):.1f} KiB a step"


def _growth(step: Callable[[], torch.Tensor], device: str) -> float:
    """KiB that each of some steps leaves behind: in the allocator of a GPU, in malloc's on the CPU."""
    total = torch.zeros((), device=device)
    for _ in range(WARM_UP):
        total = total + step()
    start = _in_use(device)
    for _ in range(STEPS):
        total = total + step()
    return (_in_use(device) - start) / STEPS / 1024


def _in_use(device: str) -> int:
    if device == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _MallocInfo
    used = mallinfo2()
    return int(used.uordblks + used.hblkhd)


class _MallocInfo(ctypes.Structure):
    """glibc's `struct mallinfo2`; lent out are `uordblks` bytes of arenas and `hblkhd` bytes of mappings."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


def empty_cache() -> Iterator[Row]:
    """Step time and peak memory with and without `empty_cache()` in the loop."""
    torch.manual_seed(0)
    width = 64
    blocks: list[nn.Module] = [nn.Conv2d(3, width, 7, 2, 3)]
    for level in range(4):
        for _ in range(6):
            blocks += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        if level < 3:
            blocks.append(nn.Conv2d(width, width * 2, 3, 2, 1))
            width *= 2
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(1000, (64,), device="cuda")
    for name, empties in (("without", False), ("with `empty_cache()`", True), ("without, again", False)):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        for step in range(WARM_UP + STEPS):
            if step == WARM_UP:
                torch.cuda.synchronize()
                start = time.perf_counter()
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if empties:
                torch.cuda.empty_cache()
        torch.cuda.synchronize()
        milliseconds = (time.perf_counter() - start) / STEPS * 1000
        peak = torch.cuda.max_memory_allocated() / 2**20
        yield (
            "empty-cache-in-loop",
            f"24 convolutions, batch 64, {name}",
            f"{milliseconds:.1f} ms a step, peak {peak:,.0f} MiB",
        )


def waits() -> Iterator[Row]:
    """Step time where each step asks for the loss and where it does not, by how its batch gets to the GPU."""
    sizes = (("8 layers of 64, batch 64", 64, 64), ("8 layers of 4096, batch 4096", 4096, 4096))
    for (name, width, rows), pinned in product(sizes, (False, True)):
        model = nn.Sequential(*(nn.Linear(width, width) for _ in range(8))).cuda()
        batch = torch.randn(rows, width, pin_memory=pinned)
        copied = "from pinned memory, `non_blocking`" if pinned else "as it comes"
        for how in ("detach", "item", "detach", "item"):
            milliseconds = 1000 * _seconds(model, batch, how)
            yield "sync-in-batch-loop", f"{name}, {copied}, `loss.{how}()`", f"{milliseconds:.2f} ms a step"


def _seconds(model: nn.Module, batch: torch.Tensor, how: str) -> float:
    """Seconds a step, in which the CPU works 5 ms for the batch as a loader without workers does."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    total: Any = 0.0
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.synchronize()
            start = time.perf_counter()
        ready = time.perf_counter() + 0.005
        while time.perf_counter() < ready:
            pass
        x = batch.to("cuda", non_blocking=batch.is_pinned())
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        total += getattr(loss, how)()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS


def contexts() -> Iterator[Row]:
    """What a process holds on a GPU that it put one number on, as the driver says."""
    import pynvml

    device = torch.cuda.device_count() - 1
    ready, done = mp.get_context("spawn").Event(), mp.get_context("spawn").Event()
    process = mp.get_context("spawn").Process(target=_touch, args=(device, ready, done))
    process.start()
    ready.wait()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(device)
    held = {each.pid: each.usedGpuMemory for each in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    done.set()
    process.join()
    taken = held.get(process.pid)
    yield (
        "model-moved-before-fit",
        "a context and one number on a GPU",
        f"{taken / 2**20:,.0f} MiB, by NVML" if taken else "not measured: NVML does not see this machine's processes",
    )


def _touch(device: int, ready: Any, done: Any) -> None:
    number = torch.ones((), device=torch.device("cuda", device))
    torch.cuda.synchronize(device)
    ready.set()
    done.wait()
    assert number.item() == 1


def ranks(device: str, count: int) -> Iterator[Row]:
    """What each rank draws and holds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    results: Any = mp.get_context("spawn").SimpleQueue()
    mp.spawn(_rank, args=(count, port, device, results), nprocs=count)
    while not results.empty():
        yield results.get()


def _rank(rank: int, count: int, port: int, device: str, results: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if device == "cuda":
        gpus = torch.cuda.device_count()
        torch.cuda.set_device(rank % gpus)
        if gpus < count:  # NCCL lets ranks share a GPU only where they say that they are of several hosts
            os.environ.update(NCCL_HOSTID=str(rank), NCCL_NET="Socket")
    dist.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=count)
    home = torch.device(device, torch.cuda.current_device()) if device == "cuda" else torch.device("cpu")
    cases: dict[tuple[str, str], Callable[[], list[Any]]] = {
        ("loader-without-distributed-sampler", "indices that every rank draws in an epoch, no sampler"): lambda: _drawn(
            None
        ),
        ("loader-without-distributed-sampler", "the same with a DistributedSampler"): lambda: _drawn(
            DistributedSampler
        ),
        ("unseeded-data-per-rank", "validation samples of rank 0 that other ranks train on, no generator"): _split,
        ("param-data-mutation-in-step", "`.data *= 0.9` on every rank"): lambda: _weights(home, lambda r: True, rank),
        ("param-data-mutation-in-step", "`.data *= 0.9` on rank 0 only"): lambda: _weights(
            home, lambda r: r == 0, rank
        ),
    }
    for (page, case), run in cases.items():
        torch.manual_seed(1000 + rank)
        everyone: list[Any] = [None] * count
        dist.all_gather_object(everyone, run())
        if rank == 0:
            results.put((page, case, _compare(page, everyone)))
    dist.destroy_process_group()


def _compare(page: str, everyone: list[Any]) -> str:
    if page == "param-data-mutation-in-step":
        weights = [values[0] for values in everyone]
        return (
            "ranks equal" if len(set(weights)) == 1 else "ranks differ"
        ) + f" ({', '.join(f'{w:.4f}' for w in weights)})"
    if page == "unseeded-data-per-rank":
        held_out = set(everyone[0])
        trained = set(range(1000)).difference(*[set(each) for each in everyone[1:]])
        return f"{len(held_out & trained)} of {len(held_out)}"
    shared = set(everyone[0]).intersection(*map(set, everyone[1:]))
    return f"{len(shared)} of 1000"


def _drawn(sampler: type[DistributedSampler[Any]] | None) -> list[int]:
    data = TensorDataset(torch.arange(1000))
    loader = DataLoader(data, batch_size=50, shuffle=sampler is None, sampler=sampler(data) if sampler else None)
    return [int(index) for (batch,) in loader for index in batch]


def _split() -> list[int]:
    _, held_out = random_split(TensorDataset(torch.arange(1000)), [800, 200])
    return list(held_out.indices)


def _weights(home: torch.device, changes: Callable[[int], bool], rank: int) -> list[float]:
    torch.manual_seed(0)
    layer = nn.Linear(8, 8).to(home)
    model = nn.parallel.DistributedDataParallel(layer, device_ids=[home.index] if home.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(step)
        optimizer.zero_grad()
        model(torch.randn(4, 8, device=home)).square().mean().backward()
        if changes(rank):
            layer.weight.data *= 0.9
        optimizer.step()
    return [layer.weight.abs().mean().item()]


if __name__ == "__main__":
    main()
