"""Files of settings beside a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.data.files import settings_in
from lightlint.facts.data.launches import is_launched_on_nodes, is_launched_with_engine
from lightlint.facts.data.started import Documents

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(content=st.dictionaries(st.text(), _VALUES, max_size=4))
def test_json_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, content: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("settings")
    (folder / "a.json").write_text(json.dumps(content))
    assert settings_in("a.json", folder, folder) == (folder / "a.json", content)


def test_a_file_is_found_from_where_a_program_may_be_started(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "src" / "run").mkdir(parents=True)
    (tmp_path / "conf" / "a.yaml").write_text("rate: 0.1\n")
    assert settings_in("conf/a.yaml", tmp_path / "src" / "run", tmp_path) == (
        tmp_path / "conf" / "a.yaml",
        {"rate": 0.1},
    )
    assert settings_in("conf/a.yaml", tmp_path / "src", tmp_path / "src") is None


@pytest.mark.parametrize("name", ["a.txt", "/etc/a.json", "none.json"])
def test_what_is_no_settings_file_in_sight_says_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("{}")
    assert settings_in(name, tmp_path, tmp_path) is None


def test_broken_json_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    assert settings_in("a.json", tmp_path, tmp_path) == (tmp_path / "a.json", UNKNOWN)


@pytest.mark.parametrize(
    ("kinds", "engine"),
    [(["DEEPSPEED"], True), (["FSDP", "DEEPSPEED"], True), (["FSDP", "MULTI_GPU"], False), ([], False)],
)
def test_an_engine_is_what_all_files_of_accelerate_start(tmp_path: Path, kinds: list[str], engine: bool) -> None:
    for kind in kinds:
        (tmp_path / f"{kind}.yaml").write_text(f"num_processes: 2\ndistributed_type: {kind}\n")
    assert is_launched_with_engine(tmp_path) is engine


@pytest.mark.parametrize(
    ("line", "several"),
    [
        ("torchrun --nnodes=4 train.py", True),
        ("#SBATCH --nodes=2", True),
        ("accelerate launch --num_machines 3 train.py", True),
        ("torchrun --nnodes=1 train.py", False),
        ("torchrun --nnodes=$N --node_rank=$R train.py", True),
        ("N=1\nexport R=0\ntorchrun --nnodes=${N} --node_rank=$R train.py", False),
        ("N=2\ntorchrun --nnodes=$N train.py", True),
        ('A="--nproc_per_node 4 --master_addr 127.0.0.1"\npython -m torch.distributed.launch $A train.py', False),
        ("#SBATCH --nodes=1", False),
        ("torchrun --nproc_per_node=8 train.py", False),
        ("torchrun --nproc_per_node=8 --node_rank=$NODE train.py", True),
        ("python train.py", None),
    ],
)
def test_scripts_say_on_how_many_nodes_a_program_runs(tmp_path: Path, line: str, several: bool | None) -> None:
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{line}\n")
    assert is_launched_on_nodes(tmp_path, tmp_path) is several
    (tmp_path / "tools").mkdir()
    assert is_launched_on_nodes(tmp_path / "tools", tmp_path) is several
    assert is_launched_on_nodes(tmp_path / "tools", tmp_path / "tools") is None
    (tmp_path / "run.sh").rename(tmp_path / "tools" / "run.slr")
    assert is_launched_on_nodes(tmp_path, tmp_path) is several


@pytest.mark.parametrize(
    ("pages", "alone"),
    [
        ({"README.md": "# Net\n```\npython train.py --lr 0.1\n```\n"}, True),
        ({"README.md": "# Net\n", "scripts/run.sh": "CUDA_VISIBLE_DEVICES=0 python -u train.py\n"}, True),
        ({"README.md": "# Net\nIt learns.\n"}, False),
        ({"README.md": "`python train.py`, or on several GPUs with `torchrun train.py`\n"}, False),
        ({"README.md": "`python train.py`\n", "a/b/big.sh": "python -m torch.distributed.launch train.py\n"}, False),
        (
            {
                "README.md": "`python train.py`\n@inproceedings{a,\n  title={Distributed Nets},\n}\n",
                "reqs.txt": "accelerate\n",
            },
            True,
        ),
        (
            {"README.md": "`python train.py` on a V100 GPU. Distributed under MIT.\n", "run.sh": "make -j$(nproc)\n"},
            True,
        ),
        ({"README.md": "`python train.py` on 4 GPUs\n"}, False),
        ({"run.sh": "NPROC_PER_NODE=4\npython train.py\n"}, False),
        ({"run.sh": "python nets/train.py \\\n  --lr 1\n", "big.sh": "torchrun other.py\n"}, True),
        ({"run.sh": "python nets/train.py \\\n  --lr 1\n", "big.sh": "torchrun nets/train.py\n"}, False),
        ({"run.sh": "python others/train.py\n", "big.sh": "torchrun other.py\n"}, False),
        ({"run.sh": "python $LAUNCHER nets/train.py\n", "big.sh": "torchrun other.py\n"}, False),
    ],
)
def test_what_is_documented_may_be_one_process(tmp_path: Path, pages: dict[str, str], *, alone: bool) -> None:
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert Documents(tmp_path).starts_alone(tmp_path / "nets" / "train.py") is alone


@pytest.mark.parametrize(
    ("page", "alone"),
    [
        ("### Linux only: it needs SoX.\n", True),
        ("It was only tested on Linux.\n", True),
        ("This doesn't work on Windows.\n", True),
        ("Windows is not supported.\n", True),
        ("It works on Windows and Linux.\n", False),
        ("# Net\n", False),
    ],
)
def test_pages_may_say_that_a_project_is_for_linux_alone(tmp_path: Path, page: str, alone: bool) -> None:
    (tmp_path / "README.md").write_text(page)
    assert Documents(tmp_path).name_linux_alone is alone
