"""`--devices N` on command lines: what starts N ranks of each kind of program."""

from __future__ import annotations

from pathlib import Path

import pytest
from launched import place

from lightlint.confirm.launch.ranks import Uses, rehearsed, uses
from lightlint.confirm.launch.target import Command, CommandError, parse

__all__ = ["place"]
RAW, LIGHTNING, SPAWNS = Uses(False, False), Uses(True, False), Uses(False, True)
AGENT = "-m torch.distributed.run --standalone --nproc-per-node 2"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("")
    path = tmp_path / "train.py"
    path.write_text("")
    return path


@pytest.mark.parametrize(
    ("line", "used", "expected"),
    [
        ("python -u train.py --lr 1", RAW, f"python -u {AGENT} train.py --lr 1"),
        ("python -m package.train x", RAW, f"python {AGENT} -m package.train x"),
        ("uv run python train.py", RAW, f"uv run python {AGENT} train.py"),
        ("python train.py", LIGHTNING, "python train.py"),
        ("python train.py", SPAWNS, "python train.py"),
        (
            "torchrun --nproc_per_node=8 train.py a",
            RAW,
            "torchrun --standalone --nproc-per-node 2 --nnodes 1 train.py a",
        ),
        (
            "torchrun --nnodes 4 --node_rank 1 --rdzv-endpoint=host:1 --nproc-per-node 8 -m package.train",
            RAW,
            "torchrun --standalone --nproc-per-node 2 --nnodes 1 -m package.train",
        ),
        (
            "python -m torch.distributed.run --max-restarts 3 train.py --nproc-per-node 9",
            RAW,
            "python -m torch.distributed.run --standalone --nproc-per-node 2 --nnodes 1 --max-restarts 3 train.py"
            " --nproc-per-node 9",
        ),
        (
            "python -m accelerate.commands.launch --multi_gpu --num_processes=4 train.py",
            RAW,
            "python -m accelerate.commands.launch --num_processes 2 --num_machines 1 --multi_gpu train.py",
        ),
        (
            "accelerate launch --num_processes 4 --mixed_precision no train.py",
            RAW,
            "accelerate launch --num_processes 2 --num_machines 1 --mixed_precision no train.py",
        ),
    ],
)
def test_commands_for_two_ranks(script: Path, line: str, used: Uses, expected: str) -> None:
    command = rehearsed(parse(line.split()), 2, used)
    assert " ".join(command.words) == expected
    assert command.words[command.at] in {"train.py", "package.train"}


def test_a_scheduler_counts_its_own_ranks(script: Path) -> None:
    with pytest.raises(CommandError, match="srun itself"):
        rehearsed(parse(["srun", "-n", "4", "python", "train.py"]), 2, RAW)


def test_one_rank_needs_no_agent(script: Path) -> None:
    command: Command = parse(["python", "train.py"])
    assert rehearsed(command, 1, RAW) == command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import lightning as L\nL.Trainer()", LIGHTNING),
        ("from lightning.fabric import Fabric\nFabric()", LIGHTNING),
        ("from lightning.pytorch.cli import LightningCLI\nLightningCLI()", LIGHTNING),
        ("import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)", SPAWNS),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')", RAW),
        ("import torch", RAW),
        ("from torch import cuda\nprint(cuda.is_available())", Uses(False, False, falls_back=True)),
    ],
)
def test_what_a_program_uses(tmp_path: Path, text: str, expected: Uses) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    assert uses([path]) == expected
