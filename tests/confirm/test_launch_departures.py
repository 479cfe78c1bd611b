"""Real ranks that raise, leave, end, are killed or stand still: who is named first, and nothing is left of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from launched import Place, linux_only, place

__all__ = ["place"]
torch = pytest.importorskip("torch")
pytestmark = [linux_only, pytest.mark.slow]
GPUS = torch.cuda.device_count()
on_gpus = pytest.mark.skipif(not GPUS, reason="NCCL needs a GPU")

PROGRAM = """
import os, signal, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Samples(TensorDataset):
    def __getitem__(self, index):
        if WORKERS and dist.get_rank() == 1 and index == 40:
            raise ValueError("bad sample")  # in a worker
        return super().__getitem__(index)


def main(rank=None):
    if ONE_GPU:  # NCCL lets two ranks share a GPU only where they say that they are of two hosts
        os.environ.update(NCCL_HOSTID=str(rank if rank is not None else os.environ["RANK"]), NCCL_NET="Socket")
    if rank is not None:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=FREE_PORT)
        dist.init_process_group("BACKEND", rank=rank, world_size=2)
    else:
        dist.init_process_group("BACKEND")
    device = torch.device("DEVICE" if ONE_GPU or "DEVICE" == "cpu" else f"cuda:{dist.get_rank()}")
    torch.manual_seed(0)
    data = Samples(torch.randn(256, 8), torch.randn(256, 1))
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data), num_workers=WORKERS)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
            if dist.get_rank() == 1 and step == 2:
                BODY
            if dist.get_rank() == 1 and step > 2: LATER


if __name__ == "__main__":
    START
"""


@dataclass(frozen=True)
class Case:
    name: str
    body: str = "pass"
    later: str = "pass"
    workers: int = 0
    start: str = "main()"
    kind: str = ""
    said: str = ""
    at: str = "BODY"
    after: str = "after step 3"

    def text(self, port: int, backend: str = "gloo") -> str:
        named = {
            "BACKEND": backend,
            "DEVICE": "cpu" if backend == "gloo" else "cuda:0",
            "ONE_GPU": str(backend == "nccl" and GPUS == 1),
            "BODY": self.body,
            "LATER": self.later,
            "WORKERS": str(self.workers),
            "START": self.start,
        }
        text = PROGRAM.replace("FREE_PORT", f'"{port}"')
        for name, value in named.items():
            text = text.replace(name, value)
        return text

    @property
    def row(self) -> int:
        return next(row for row, line in enumerate(PROGRAM.splitlines(), start=1) if self.at in line)


CASES = (
    Case("raises", 'raise ValueError("bad sample")', kind="raised", said="rank 1 raised ValueError"),
    Case(
        "raises-in-a-worker",
        workers=1,
        kind="raised",
        said="rank 1 raised ValueError in a worker of its data loader",
        at="# in a worker",
        after="after step 1",
    ),
    Case("leaves", "return", kind="left", said="rank 1 left the loop and ended"),
    Case(
        "leaves-where-it-is-cut",
        later="break",
        kind="loop left",
        said="rank 1 left the loop",
        at="LATER",
        after="step 4",
    ),
    Case("exits", "os._exit(0)", kind="exited", said="rank 1 called `os._exit` with status 0"),
    Case(
        "is-killed", "os.kill(os.getpid(), signal.SIGKILL)", kind="killed", said="rank 1 was killed by SIGKILL", at=""
    ),
    Case("stands-still", "time.sleep(10_000)", kind="stood still", said="rank 1 stood still"),
    Case(
        "raises-when-spawned",
        'raise ValueError("bad sample")',
        start="mp.spawn(main, nprocs=2)",
        kind="raised",
        said="rank 1 raised ValueError",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("backend", ["gloo", pytest.param("nccl", marks=on_gpus)])
def test_the_rank_that_is_no_longer_there_is_named_first(place: Place, case: Case, backend: str) -> None:
    place.write("train.py", case.text(_free_port(), backend))
    ran = place.confirm("--stall", "15", "--no-timing", *_command(case, backend))
    first, _, rest = ran.stdout.partition("\n\n")[2].partition("\n")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert first.startswith(f"fault          {case.said}"), ran.stdout
    assert case.after in first
    assert f"train.py:{case.row} in" in first or not case.at
    others = rest.splitlines()[0]
    if backend == "nccl" and case.kind in {"exited", "killed"}:  # it takes kernels of its last step along
        assert re.search(r"rank 0 (waited for it in|stood at|was last seen at) .*train\.py:\d+ in main", others), (
            ran.stdout
        )
    else:
        assert "rank 0 wait" in others, ran.stdout
        assert "`backward` at train.py:" in others or "`forward` at train.py:" in others
    assert place.wait_until_clean() == []


def _command(case: Case, backend: str) -> tuple[str, ...]:
    """Two ranks; those that share a GPU under NCCL start themselves, for `--devices 2` has them exchange by gloo there."""
    if backend == "gloo" or GPUS > 1:
        return "--devices", "2", "--", "python", "train.py"
    if case.start != "main()":
        return "--", "python", "train.py"
    return "--", "torchrun", "--standalone", "--nproc-per-node", "2", "train.py"


def test_a_finding_on_the_line_is_confirmed_and_the_report_tells_the_kind(place: Place) -> None:
    case = next(each for each in CASES if each.name == "leaves-where-it-is-cut")
    place.write("train.py", case.text(_free_port()))
    report: dict[str, Any] = place.report("--devices", "2", "--no-timing", "--", "python", "train.py")
    (observed, *_) = report["observations"]
    assert (observed["kind"], observed["fault"], observed["ranks"]) == (case.kind, True, [1])
    assert observed["places"][0]["row"] == case.row
    verdicts = {each["finding"]["code"]: each["verdict"] for each in report["verdicts"]}
    assert verdicts["LL409"] == "confirmed"
    assert report["run"]["ended"] == "cut"


UNNAMED = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def keep(writer, model, name):
    writer(model.module.state_dict(), name)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    make = {"loader": DataLoader}["loader"]
    loader = make(TensorDataset(torch.randn(256, 8), torch.randn(256, 1)), batch_size=16)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    keep(getattr(torch, "save"), model, "best.pt")


if __name__ == "__main__":
    main()
"""


def test_what_no_finding_names_is_told_and_a_fault(place: Place) -> None:
    place.write("train.py", UNNAMED)
    place.write("none.json", "[]")
    ran = place.confirm("--devices", "2", "--findings", "none.json", "--", "python", "train.py")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "fault          ranks 0 and 1 trained on the same samples: 4 of 4 batches are equal" in ran.stdout
    assert "fault          ranks 0 and 1 wrote the same file, best.pt at train.py:10 in keep" in ran.stdout
    assert "no finding to confirm" in ran.stdout
    assert place.wait_until_clean() == []


def test_after_a_crash_at_import_no_advice_is_given(place: Place) -> None:
    place.write("train.py", "import not_there\n" + UNNAMED)
    ran = place.confirm("--", "python", "train.py")
    assert ran.returncode == 1
    said = "fault          the program raised ModuleNotFoundError at train.py:1, before the first step: No module named"
    assert said in ran.stdout
    assert "add `--devices" not in ran.stdout


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
