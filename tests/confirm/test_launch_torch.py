"""Real programs with torch under the launcher: stalls, rehearsed ranks, seeded runs."""

from __future__ import annotations

import pytest
from launched import Place, linux_only, place

__all__ = ["place"]
pytest.importorskip("torch")
pytestmark = [linux_only, pytest.mark.slow]

HANGS = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset

    def main():
        dist.init_process_group("gloo")
        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x, y) in enumerate(DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if number == 1 and dist.get_rank() == 0:
                dist.barrier()

    if __name__ == "__main__":
        main()
"""
TRAINS = """
    import random, sys, time
    import numpy, torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(64, 4) + float(numpy.random.rand()) + random.random()
    for number, (x, y) in enumerate(DataLoader(TensorDataset(data, torch.randn(64, 1)), batch_size=8, shuffle=True)):
        out = model(x) + (time.time_ns() % 1000 if len(sys.argv) > 1 and number == 2 else 0)
        torch.zeros(8).put_(torch.arange(8), torch.ones(8))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(out, y).backward()
        optimizer.step()
"""


def test_a_stalled_rehearsal_shows_where_each_rank_stands(place: Place) -> None:
    place.write("train.py", HANGS)
    run = place.report("--devices", "2", "--stall", "8", "--no-timing", "--", "python", "train.py")["run"]
    assert (run["ended"], run["ranks"], run["steps"]) == ("stalled", 2, {"0": 2, "1": 2})
    assert list(run["stacks"]) == ["rank 0", "rank 1"]
    assert run["stacks"]["rank 0"].startswith("train.py:16 in main\n")
    assert "barrier" in run["stacks"]["rank 0"]
    assert run["stacks"]["rank 1"].startswith("train.py:13 in main\n")
    assert place.wait_until_clean() == []


def test_ranks_without_a_process_group_are_told(place: Place) -> None:
    place.write("train.py", TRAINS)
    report = place.report("--devices", "2", "--no-timing", "--", "python", "train.py")
    assert report["run"]["notes"] == ["the script makes no process group: its 2 ranks trained alone"]
    assert place.left() == []


@pytest.mark.parametrize(("word", "what"), [((), None), (("x",), "`0.weight`")])
def test_seeded_runs_are_compared(place: Place, word: tuple[str, ...], what: str | None) -> None:
    place.write("train.py", TRAINS)
    found = place.report("--determinism", "--no-timing", "--", "python", "train.py", *word)["determinism"]
    assert found["compared"] > 4
    assert found["problem"] == ""
    assert (found["difference"] and (found["difference"]["step"], found["difference"]["what"])) == (what and (3, what))
    assert [operation.partition(" ")[0] for operation in found["operations"]] == ["put_"]
