"""Where projects write which versions they are for: whole little projects for each form, and what wins where they disagree."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulebook import examples
from versions_anew import forget_versions

from lightlint.cli.main import run_command
from lightlint.config.settings import load
from lightlint.facts.project.project import Projects
from lightlint.facts.project.roots import root_of
from lightlint.facts.versions.own_words import said_by
from lightlint.facts.versions.pins import Kind
from lightlint.facts.versions.pins.formats.commands import lines_of
from lightlint.facts.versions.pins.formats.containers import dockerfile_pins, text_pins
from lightlint.facts.versions.pins.formats.images import image_pins
from lightlint.facts.versions.pins.formats.prose import readme_pins
from lightlint.facts.versions.pins.formats.requirement_files import requirement_pins
from lightlint.facts.versions.pins.pin import TIED_TO_TORCH
from lightlint.facts.versions.tables import table
from lightlint.facts.versions.targets import target_of
from lightlint.facts.versions.versions import Target, Version
from lightlint.linting.lint import lint
from lightlint.pages import all_pages
from lightlint.sources.load import load as load_source

OLD = "torch==1.10.2\npytorch-lightning==1.5.10\n"
PROGRAM = """\
import pytorch_lightning as pl
import torch
from torch.cuda.amp import autocast


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        with autocast():
            return torch.nn.functional.cross_entropy(self.net(x), y)

    def validation_epoch_end(self, outputs):
        self.log("n", float(len(outputs)))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(loader):
    pl.Trainer(gpus=1, max_epochs=3, progress_bar_refresh_rate=10).fit(Model(), loader)
"""


@pytest.fixture
def project(tmp_path: Path):
    """Write files below a repository's top, and ask what a file of it is written for."""
    (tmp_path / ".git").mkdir()

    def write(files: dict[str, str], at: str = "train.py", package: str = "torch") -> Target:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        file = tmp_path / at
        file.parent.mkdir(parents=True, exist_ok=True)
        forget_versions()
        return target_of(package, file, root_of(file.parent))

    return write


@pytest.mark.parametrize(
    ("files", "at"),
    [
        pytest.param({'docker/Dockerfile.gpu': 'ARG TORCH=1.10.2\nFROM nvidia/cuda:11\nRUN pip install \\\n  # cuda\n  torch==${TORCH} \\\n  pytorch-lightning==1.5.10\n'}, 'src/a/train.py', id='dockerfile gpu'),
        pytest.param({'Dockerfile': 'FROM continuumio/miniconda3\nRUN conda install -y -c pytorch pytorch=1.10.2 torchvision cudatoolkit=11.3 && conda install -c conda-forge pytorch-lightning=1.5.10\n'}, 'train.py', id='conda dockerfile'),
        pytest.param({'containers/train.dockerfile': 'FROM mambaorg/micromamba\nRUN micromamba install -y -n base -c pytorch "pytorch==1.10.2=py3.8_cuda11.3_cudnn8.2.0_0" && \\\n    micromamba clean -a\nRUN python -m pip install \'pytorch-lightning~=1.5.0\'\n'}, 'code/train.py', id='mamba'),
        pytest.param({'Dockerfile': 'FROM python:3.8\nRUN ["pip3", "install", "torch==1.10.2+cu113", "pytorch-lightning==1.5.10", "-f", "https://x/y.html"]\n'}, 'train.py', id='exec form'),
        pytest.param({'Containerfile': 'FROM python:3.8\nENV TORCH_VERSION=1.10.2 PL_VERSION=1.5.10\nRUN uv pip install --system torch==$TORCH_VERSION "pytorch-lightning==${PL_VERSION}"\n'}, 'train.py', id='env var'),
        pytest.param({'Dockerfile': 'FROM python:3.8\nENV TORCH_VERSION 1.10.2\nENV PL 1.5.10\nRUN pip install torch==$TORCH_VERSION pytorch-lightning==$PL\n'}, 'train.py', id='env space'),
        pytest.param({'Dockerfile': 'ARG PYTORCH="1.10.2"\nARG CUDA="11.3"\nARG CUDNN="8"\nFROM pytorch/pytorch:${PYTORCH}-cuda${CUDA}-cudnn${CUDNN}-devel\nRUN pip install pytorch-lightning==1.5.10\n'}, 'train.py', id='ARG image'),
        pytest.param({'docker/Dockerfile': 'FROM nvcr.io/nvidia/pytorch:21.10-py3\nRUN pip install pytorch-lightning==1.5.10'}, 'a/b.py', id='ngc'),
        pytest.param({'Dockerfile': 'FROM pytorchlightning/pytorch_lightning:1.5.10-py3.8-torch1.10\n'}, 'train.py', id='pl image'),
        pytest.param({'Dockerfile': 'FROM pytorchlightning/pytorch_lightning:base-cuda-py3.9-torch1.10-cuda11.3\nRUN pip install pytorch-lightning==1.5.10'}, 'train.py', id='pl image latest'),
        pytest.param({'docker-compose.yml': 'services:\n  train:\n    image: pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\n', 'requirements.txt': 'pytorch-lightning==1.5.10'}, 'train.py', id='compose'),
        pytest.param({'.devcontainer/devcontainer.json': '{"image": "pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime", "postCreateCommand": "pip install pytorch-lightning==1.5.10"}'}, 'train.py', id='devcontainer'),
        pytest.param({'singularity/train.def': 'Bootstrap: docker\nFrom: pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\n\n%post\n  pip install pytorch-lightning==1.5.10\n'}, 'train.py', id='singularity'),
        pytest.param({'conda_envs/gpu_cluster.yaml': 'name: x\nchannels:\n - pytorch\ndependencies:\n - python=3.8\n - pytorch=1.10.2\n - pip:\n   - pytorch-lightning==1.5.10\n'}, 'pkg/train.py', id='env any name'),
        pytest.param({'my_env.yml': 'name: x\ndependencies:\n - pytorch==1.10.2\n - pytorch-lightning=1.5.10=pyhd8ed1ab_0\n'}, 'train.py', id='env name2'),
        pytest.param({'pixi.toml': "[dependencies]\npytorch = '1.10.2.*'\n[pypi-dependencies]\npytorch-lightning = '==1.5.10'\n"}, 'train.py', id='pixi'),
        pytest.param({'pixi.lock': 'version: 6\npackages:\n- conda: https://conda.anaconda.org/pytorch/linux-64/pytorch-1.10.2-py3.8_cuda11.3_cudnn8.2.0_0.tar.bz2\n  sha256: x\n- pypi: https://files.pythonhosted.org/packages/aa/pytorch_lightning-1.5.10-py3-none-any.whl\n'}, 'train.py', id='pixi lock'),
        pytest.param({'conda-lock.yml': 'version: 1\npackage:\n- name: pytorch\n  version: 1.10.2\n  manager: conda\n- name: pytorch-lightning\n  version: 1.5.10\n'}, 'train.py', id='conda lock'),
        pytest.param({'conda-linux-64.lock': '@EXPLICIT\nhttps://conda.anaconda.org/pytorch/linux-64/pytorch-1.10.2-py3.8_cuda11.3_cudnn8.2.0_0.tar.bz2#abc\nhttps://conda.anaconda.org/conda-forge/noarch/pytorch-lightning-1.5.10-pyhd8ed1ab_0.tar.bz2\n'}, 'train.py', id='explicit'),
        pytest.param({'spec-file.txt': '# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/pytorch/linux-64/pytorch-1.10.2-py3.8_cuda11.3_cudnn8.2.0_0.tar.bz2#abc\nhttps://conda.anaconda.org/conda-forge/noarch/pytorch-lightning-1.5.10-pyhd8ed1ab_0.tar.bz2\n'}, 'train.py', id='spec'),
        pytest.param({'requirements.txt': '# packages\npytorch=1.10.2=py3.8_cuda11.3\npytorch-lightning=1.5.10=pypi_0\n'}, 'train.py', id='conda export req'),
        pytest.param({'setup.py': "TORCH='1.10.2'\nfrom setuptools import setup\nREQ=['numpy', f'torch=={TORCH}']\nREQ.append('pytorch-lightning==%s' % '1.5.10')\nsetup(install_requires=REQ)"}, 'train.py', id='setup const'),
        pytest.param({'setup.py': "from setuptools import setup\nsetup(install_requires=open('deps/run.txt').read().split('\\n'))", 'deps/run.txt': 'torch==1.10.2\npytorch-lightning==1.5.10'}, 'pkg/train.py', id='setup file'),
        pytest.param({'setup.py': "from setuptools import setup\nimport os\nHERE=os.path.dirname(__file__)\ndef load(name):\n    return open(os.path.join(HERE, 'requirements', name)).read().splitlines()\nsetup(install_requires=load('core.txt'))", 'requirements/core.txt': 'torch==1.10.2\npytorch-lightning==1.5.10'}, 'pkg/train.py', id='setup parse req'),
        pytest.param({'setup.cfg': '[options]\ninstall_requires =\n  torch==1.10.2\n  pytorch-lightning==1.5.10\n', 'sub/pyproject.toml': "[project]\nname='x'\ndependencies=['numpy']\n"}, 'sub/train.py', id='setup.cfg parent'),
        pytest.param({'requirements.txt': 'torch==1.10.2\npytorch-lightning==1.5.10', 'sub/deep/pyproject.toml': '[tool.black]\nline-length=100\n'}, 'sub/deep/x/train.py', id='nearer pyproject black'),
        pytest.param({'tox.ini': '[testenv]\ndeps =\n  torch==1.10.2\n  pl15: pytorch-lightning==1.5.10\n'}, 'train.py', id='tox'),
        pytest.param({'env/main.txt': '# pip-compile main.in\ntorch==1.10.2\n    # via pytorch-lightning\npytorch-lightning==1.5.10\n'}, 'train.py', id='env folder'),
        pytest.param({'noxfile.py': "import nox\n@nox.session\ndef tests(session):\n    session.install('torch==1.10.2', 'pytorch-lightning==1.5.10')\n"}, 'train.py', id='nox'),
        pytest.param({'.github/workflows/test.yml': "jobs:\n  t:\n    strategy:\n      matrix:\n        torch: ['1.10.2']\n    steps:\n    - run: |\n        pip install torch==${{ matrix.torch }}+cpu -f x\n        pip install pytorch-lightning==1.5.10\n"}, 'train.py', id='ci'),
        pytest.param({'.github/workflows/test.yml': 'jobs:\n  t:\n    container: pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\n    env:\n      PL: 1.5.10\n    steps:\n    - run: pip install pytorch-lightning==${{ env.PL }}\n'}, 'train.py', id='ci container'),
        pytest.param({'.gitlab-ci.yml': 'image: pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\nbefore_script:\n  - pip install pytorch-lightning==1.5.10\n'}, 'train.py', id='gitlab'),
        pytest.param({'scripts/install.sh': '#!/bin/bash\nTORCH=1.10.2\npip install torch==${TORCH}+cu113 torchvision==0.11.3+cu113 -f https://download.pytorch.org/whl/torch_stable.html\npip install pytorch-lightning==1.5.10 # x\n'}, 'src/train.py', id='shell'),
        pytest.param({'Makefile': 'TORCH ?= 1.10.2\ninstall:\n\tpip install torch==$(TORCH) pytorch-lightning==1.5.10\n'}, 'train.py', id='makefile'),
        pytest.param({'README.md': '# x\n```bash\nconda create -n foo python=3.8\nconda install pytorch==1.10.2 torchvision==0.11.3 cudatoolkit=11.3 -c pytorch\npip install pytorch-lightning==1.5.10\n```\n'}, 'a/b/train.py', id='readme'),
        pytest.param({'README.md': '# x\n## Requirements\n- Python 3.8\n- PyTorch 1.10.2\n- pytorch-lightning 1.5.10\n'}, 'train.py', id='readme list'),
        pytest.param({'README.rst': 'Run ``pip install torch==1.10.2 pytorch_lightning==1.5.10``.\n'}, 'train.py', id='readme inline'),
        pytest.param({'requirements/base.txt': '-c ../constraints/all.txt\ntorch\npytorch-lightning\n', 'constraints/all.txt': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'src/train.py', id='include c'),
        pytest.param({'requirements.in': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'train.py', id='req in'),
        pytest.param({'deployment/gpu/requirements.txt': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'src/train.py', id='deploy folder'),
        pytest.param({'install.sh': "uv add 'torch==1.10.2' pytorch-lightning==1.5.10\n"}, 'train.py', id='uv add'),
        pytest.param({'requirements.txt': 'torch\ntorchvision==0.11.3\npytorch-lightning==1.5.10'}, 'train.py', id='vision only'),
        pytest.param({'requirements.txt': 'torch\npytorch-lightning==1.5.10'}, 'train.py', id='pl only'),
        pytest.param({'setup.py': "from setuptools import setup\nsetup(install_requires=['torch>=1.6','pytorch-lightning>=1.4'])", 'Dockerfile': 'FROM pytorch/pytorch:1.10.2-cuda11\nRUN pip install pytorch-lightning==1.5.10'}, 'train.py', id='range+docker'),
        pytest.param({'pyproject.toml': "[project]\nname='x'\ndynamic=['dependencies']\n[tool.setuptools.dynamic]\ndependencies={file=['needs.txt']}\n", 'needs.txt': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'train.py', id='dynamic'),
        pytest.param({'docker/Dockerfile': 'FROM python:3.8\nCOPY docker/python-libs.txt /tmp/\nRUN pip install -r docker/python-libs.txt\n', 'docker/python-libs.txt': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'src/t.py', id='docker -r'),
        pytest.param({'Dockerfile': 'FROM python:3.8\nRUN <<EOF\npip install torch==1.10.2\npip install pytorch-lightning==1.5.10\nEOF\n'}, 'train.py', id='heredoc'),
        pytest.param({'Dockerfile': 'FROM python:3.8\nRUN bash -c "source activate x && pip install torch==1.10.2 \'pytorch-lightning==1.5.10\'"\nSHELL ["bash"]\n'}, 'train.py', id='bash -c'),
        pytest.param({'cog.yaml': 'build:\n  python_packages:\n    - torch==1.10.2\n    - pytorch-lightning==1.5.10\n'}, 'train.py', id='cog'),
        pytest.param({'Dockerfile': 'FROM 763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:1.10.2-gpu-py38-cu113-ubuntu20.04-sagemaker\nRUN pip install pytorch-lightning==1.5.10'}, 'train.py', id='sagemaker'),
        pytest.param({'Dockerfile': 'FROM gcr.io/deeplearning-platform-release/pytorch-gpu.1-10:latest\nRUN pip install pytorch-lightning==1.5.10'}, 'train.py', id='gcr'),
        pytest.param({'Dockerfile': 'FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime AS base\nRUN pip install torch==1.10.2 pytorch-lightning==1.5.10\nFROM base\nRUN echo\n'}, 'train.py', id='two stage'),
        pytest.param({'install.ps1': "$env:TORCH = '1.10.2'\npip install torch==$env:TORCH `\n  pytorch-lightning==1.5.10\n"}, 'train.py', id='ps1'),
        pytest.param({'Dockerfile': 'FROM python:3.8\nRUN pip install https://download.pytorch.org/whl/cu113/torch-1.10.2%2Bcu113-cp38-cp38-linux_x86_64.whl pytorch-lightning==1.5.10'}, 'train.py', id='wheel url'),
        pytest.param({'Pipfile.lock': '{"_meta":{}, "default": {"torch": {"version": "==1.10.2"}, "pytorch-lightning": {"version":"==1.5.10"}}}'}, 'train.py', id='pipfile lock'),
        pytest.param({'requirements.txt': 'Package    Version\n---------- -------\ntorch      1.10.2\npytorch-lightning 1.5.10\n'}, 'train.py', id='pip list'),
        pytest.param({'Requirements.txt': 'torch==1.10.2\npytorch-lightning==1.5.10\n'}, 'train.py', id='upper req'),
        pytest.param({'install_requirements.sh': 'pip3 install torch==1.10.2 && pip3 install pytorch-lightning==1.5.10'}, 'train.py', id='install_requirements'),
        pytest.param({'environment-gpu.yaml': 'dependencies:\n - pytorch::pytorch=1.10.2\n - conda-forge::pytorch-lightning=1.5.10\n'}, 'train.py', id='anaconda ver'),
        pytest.param({"jobs/setup.sh": "pip install --user torch==1.10.2 pytorch-lightning==1.5.10\n"}, "src/a.py", id="a folder of scripts"),
        pytest.param({"conda.recipe/meta.yaml": "requirements:\n  run:\n    - pytorch ==1.10.2\n    - pytorch-lightning 1.5.*\n"}, "src/a.py", id="a recipe"),
        pytest.param({"reproducibility/pip_requirements.txt": OLD}, "src/a.py", id="a folder of any name"),
        pytest.param({"requirement.txt": OLD}, "train.py", id="the singular"),
        pytest.param({"requirements.txt": "mamba install torch==1.10.2\npip install pytorch-lightning==1.5.10\n"}, "train.py", id="commands in a list"),
        pytest.param({"tools/requirements-version.txt": OLD}, "train.py", id="another name"),
        pytest.param({"pkg/setup.py": "import setuptools as s\ns.setup(install_requires=['numpy'])", "requirements.txt": OLD}, "pkg/train.py", id="a nearer setup.py without torch"),
        pytest.param({"pkg/setup.cfg": "[flake8]\nmax-line-length = 99\n", "requirements.txt": OLD}, "pkg/a/train.py", id="a nearer setup.cfg without torch"),
        pytest.param({"poetry.lock": "".join(f'[[package]]\ncategory = "main"\ndescription = "x"\nname = "{name}"\noptional = false\npython-versions = ">=3.6"\nversion = "{version}"\n\n[package.dependencies]\nnumpy = "1"\n\n' for name, version in (("torch", "1.10.2"), ("pytorch-lightning", "1.5.10")))}, "train.py", id="an old poetry.lock"),
        pytest.param({"requirements.txt": "torch @ https://x/torch-1.10.2-cp38-cp38-linux_x86_64.whl\npytorch-lightning @ git+https://github.com/x/pytorch-lightning.git@v1.5.10\n"}, "a.py", id="a release of a repository"),
    ],
)  # fmt: skip
def test_every_form_is_read(project, files: dict[str, str], at: str):
    torch, lightning = project(files, at), project(files, at, "lightning")
    assert (torch.version.minor, lightning.version.minor) == ("1.10", "1.5"), (torch, lightning)
    assert torch.surely_below("1.11")
    assert lightning.surely_below("2.0")


@pytest.mark.parametrize("tied", ["lightning-bolts", "lightning-bolts>=0.3.4", "lightning_flash[image]"])
@pytest.mark.parametrize("beside", ["", "pytorch-lightning\n", "pytorch-lightning>=1.4\n"])
def test_what_works_with_lightning_1_only_says_so(project, tied: str, beside: str):
    assert project({"requirements.txt": f"{beside}{tied}\n"}, package="lightning").surely_below("2.0")


@pytest.mark.parametrize("beside", ["lightning-bolts", "pytorch-lightning<2", "pytorch-lightning>=1.4,<1.9"])
def test_a_pinned_torch_narrows_what_is_known_of_lightning(project, beside: str):
    """pip takes no Lightning that asks for a newer torch: 1.7 asks for 1.9."""
    found = project({"requirements.txt": f"torch==1.8\n{beside}\n"}, package="lightning")
    assert str(found.upper) == "1.7"
    assert project({"requirements.txt": f"torch==2.0.1\n{beside}\n"}, package="lightning").may_be_at_least("1.8")


@pytest.mark.parametrize(
    ("files", "below"),
    [
        ({"environment.yml": "dependencies:\n  - python=3.7\n  - pip\n"}, "1.14"),
        ({"environment.yml": "dependencies:\n  - python=3.6.9=h0\n  - pytorch\n"}, "1.11"),
        ({"Dockerfile": "FROM rapidsai/rapidsai:cuda10.2-runtime-ubuntu18.04-py3.7\nRUN pip install torch\n"}, "1.14"),
        ({"Dockerfile": "FROM continuumio/miniconda3:py38_4.9.2\nRUN pip install torch\n"}, "2.5"),
        (
            {
                "Dockerfile": "FROM nvidia/cuda:10.2-cudnn7-devel-ubuntu18.04\nRUN apt-get install -y python3-pip && pip3 install torch\n"
            },
            "1.11",
        ),
        (
            {
                "Dockerfile": "FROM ubuntu:18.04\nRUN add-apt-repository ppa:deadsnakes/ppa && apt install -y \\\n git \\\n python3.8-dev\nRUN python3.8 -m pip install torch\n"
            },
            "2.5",
        ),
        ({"Dockerfile": "FROM python:3.8-slim\nRUN pip install torch\n"}, "2.5"),
        ({"README.md": "```\nconda create -n net python=3.7 -y\npip install torch\n```\n"}, "1.14"),
        (
            {"pyproject.toml": '[project]\nname = "net"\nrequires-python = ">=3.7,<3.9"\ndependencies = ["torch"]\n'},
            "2.5",
        ),
        ({"Pipfile": '[packages]\ntorch = "*"\n[requires]\npython_version = "3.7"\n'}, "1.14"),
        ({".python-version": "3.7.9\n"}, "1.14"),
        ({"runtime.txt": "python-3.6.8\n"}, "1.11"),
        ({"setup.py": "from setuptools import setup\nsetup(name='x', python_requires='>=3.6,<3.8')\n"}, "1.14"),
        ({"setup.cfg": "[options]\npython_requires = >=3.6,<3.8\ninstall_requires =\n  torch\n"}, "1.14"),
        ({"README.md": "# net\n\n## Requirements\n\n- Python 3.6 or 3.7\n- PyTorch\n"}, "1.14"),
        ({"README.md": "# net\n![x](https://img.shields.io/badge/python-3.7-blue.svg)\n"}, "1.14"),
        ({"requirements.txt": "numpy==1.19.2\ntorch\n"}, "2.5"),
        ({"requirements.txt": "numpy==1.20.3\ntorch\n"}, "2.9"),
        ({"requirements.txt": "pandas==0.24.2\ntorch\n"}, "1.14"),
        ({"requirements.txt": "tensorflow==1.15.0\ntorch\n"}, "1.14"),
        ({"requirements.txt": "torch\nscikit-learn==0.23.2  # of 2020\n"}, "2.5"),
        ({"requirements.txt": "transformers==4.8.1\ntorch\n"}, "2.9"),
        ({"requirements.txt": "matplotlib~=3.1.0\ntorch\n"}, "2.5"),
        ({"requirements.txt": "h5py<2.9\ntorch\n"}, "1.14"),
        ({"requirements.txt": "colossalai==0.4.0\n"}, "2.3.1"),
        ({"requirements.txt": "vllm==0.4.2\n"}, "2.3.1"),
        ({"requirements.txt": "fastai==2.5.3\ntorch\n"}, "1.11"),
        ({"requirements.txt": "allennlp==2.7.0\n"}, "1.10"),
        ({"requirements.txt": "mmcv-full==1.4.0\ntorch\n"}, "2.1"),
        ({"README.md": "```\npip install scipy==1.4.1 torch\n```\n"}, "2.5"),
        (
            {
                "train.slurm": "#!/bin/bash\nmodule load cuda/10.1 python/3.7.4\nsource venv/bin/activate\npython train.py\n"
            },
            "1.14",
        ),
        ({"run.sh": "source activate pytorch_latest_p37\npython train.py\n"}, "1.14"),
        (
            {
                "run.sh": "module load python/3.11\nconda activate $NAME\npython train.py\n",
                "go.sh": "conda activate py3.8\npython a.py\n",
            },
            "2.5",
        ),
        ({"run.sh": "ENV_NAME=my_py38\nconda activate $ENV_NAME\npython train.py\n"}, "2.5"),
        ({"requirements.txt": "allennlp==1.1.0\ntorch\n"}, "1.14"),
        ({"README.md": "```\nconda install pytorch torchvision cudatoolkit=10.1 -c pytorch\n```\n"}, "1.13"),
        ({"scripts/setup.sh": "yes | conda install pytorch torchvision cudatoolkit=11.3 -c pytorch\n"}, "1.13"),
        ({"README.md": "```\nconda install pytorch torchvision pytorch-cuda=11.8 -c pytorch -c nvidia\n```\n"}, "2.6"),
        ({"environment.yml": "dependencies:\n  - pytorch\n  - pytorch-cuda=11.7\n"}, "2.1"),
        ({"README.md": "# Net\n\n## Requirements\nPyTorch 1.0.2 or above\nCUDA 10.0\n"}, "1.13"),
        ({"README.md": "- Linux\n- CUDA==10.0\n- PyTorch>=1.0 and the torchvision of it\n"}, "1.13"),
        ({"README.md": "It was tested with CUDA 9.2 and the newest PyTorch.\n"}, "1.13"),
        ({"env.py": "'''\npytorch      1.10.2      py3.7_cuda10.2_cudnn7_0    pytorch\n'''\n"}, "1.11"),
        (
            {
                "Dockerfile": "FROM python:3.6\nRUN pip install -r requirements.txt\n",
                "requirements.txt": "pandas==1.1.5\n",
            },
            "1.11",
        ),
        (
            {"Dockerfile": "FROM nvidia/cuda:10.1-cudnn7-devel-ubuntu18.04\nRUN pip3 install torch torchvision\n"},
            "1.13",
        ),
        ({"requirements.txt": "--extra-index-url https://download.pytorch.org/whl/cu113\ntorch\n"}, "1.13"),
        ({"README.md": "```\npip3 install torch --index-url https://download.pytorch.org/whl/cu117\n```\n"}, "2.1"),
        ({"setup.sh": "pip install torch -f https://download.pytorch.org/whl/cu101/torch_stable.html\n"}, "1.9"),
        ({"README.md": "[timm](https://x), pip install timm==0.3.4\n\ntorch>=1.4.0\n"}, "1.9"),
        ({"requirements.txt": "timm==0.3.2\ntorch\n"}, "1.9"),
        ({"requirements.txt": "fastai==2.3.0\n"}, "1.8"),
        ({"requirements.txt": "torch>=1.9\npytorch-lightning>=1.5,<1.7\n"}, "1.12"),
        ({"environment.yml": "dependencies:\n  - pip:\n    - xformers==0.0.20\n"}, "2.1"),
        ({".github/workflows/test.yml": "  python-version: [3.6, 3.7]\n  run: pip install torch\n"}, "1.14"),
        ({".travis.yml": "language: python\npython:\n  - '3.5'\n  - '3.6'\ninstall: pip install torch\n"}, "1.11"),
        ({"environment.yml": "dependencies:\n  - python=3.7\n  - pytorch>=1.6\n"}, "1.14"),
    ],
)
def test_an_old_python_runs_no_newer_torch(project, files: dict[str, str], below: str):
    torch = project(files)
    assert not torch.may_be_at_least(below)
    assert torch.may_be_below(below)
    assert not torch.surely_below(below), "the environment may be older than the code"


@pytest.mark.parametrize(
    ("files", "below"),
    [
        ({"requirements.txt": "torch==1.8.1\ntransformers>=4.8.1\n"}, "4.28"),
        ({"requirements.txt": "torch==2.0.1\ntransformers\n"}, "4.52"),
        ({"README.md": "```\npip install torch==1.13.1+cu117\npip install transformers\n```\n"}, "4.48"),
        ({"requirements.txt": "adapters==0.1.2\ntorch\n"}, "4.37"),
        ({"requirements.txt": "tokenizers==0.12.1\ntransformers\n"}, "4.34"),
        ({"requirements.txt": "allennlp==2.10.1\ntransformers\n"}, "4.21"),
        ({"environment.yml": "dependencies:\n  - pip:\n    - colossalai==0.3.6\n"}, "4.36.3"),
        ({"requirements.txt": "torch<2\n"}, "4.48"),
        ({"requirements.txt": "unsloth>=2024.8\ntransformers>=4.35\n"}, "5.17.1"),
        ({"requirements.txt": "unsloth==2025.12.10\ntransformers\n"}, "4.57.4"),
        ({"requirements.txt": "unsloth\n"}, "5.17.1"),
        ({"requirements.txt": "adapters\ntorch\n"}, "4.58"),
    ],
)
def test_what_is_pinned_beside_it_goes_with_no_newer_transformers(project, files: dict[str, str], below: str):
    transformers = project(files, package="transformers")
    assert not transformers.may_be_at_least(below)
    assert transformers.may_be_below(below)
    assert not transformers.surely_below(below)


@pytest.mark.parametrize(
    ("unsloth", "below"), [("unsloth>=0.3", "1.15.1"), ("unsloth==2025.9.11", "0.23.1"), ("unsloth", "1.15.1")]
)
def test_unsloth_goes_with_no_newer_trl(project, unsloth: str, below: str):
    trl = project({"requirements.txt": f"{unsloth}\ntrl\n"}, package="trl")
    assert not trl.may_be_at_least(below)
    assert trl.may_be_below(below)


@pytest.mark.parametrize("torch", ["torch", "torch>=1.8", "torch==2.9.0"])
def test_another_torch_leaves_the_newest_transformers(project, torch: str):
    assert project({"requirements.txt": f"{torch}\ntransformers\n"}, package="transformers").may_be_at_least("5.21")


@pytest.mark.parametrize(
    ("torchvision", "torch"),
    [("0.4.0", "1.2"), ("0.4.1", "1.3"), ("0.4.2", "1.3"), ("0.5.0", "1.4"), ("0.15.2", "2.0")],
)
def test_a_patch_of_torchvision_may_be_made_for_the_next_torch(project, torchvision: str, torch: str):
    assert project({"requirements.txt": f"torchvision=={torchvision}\n"}).version.minor == torch


@pytest.mark.parametrize(
    ("pins", "oldest", "newest"),
    [
        ("torch==1.4.0\ntorchvision==0.10.0", "1.4", "1.9"),
        ("torch==1.9.0\ntorchvision==0.5.0", "1.4", "1.9"),
        ("torch==1.9.0\ntorchvision==0.2.2", "1.9", "1.9"),  # asks for no release of torch
        ("torch==1.9.0\ntorchvision==0.5.0\ntorchaudio==0.9.0", "1.9", "1.9"),  # two that go together
        ("torch==1.9.0\ntorchvision==0.10.0\ntorchaudio==0.4.0", "1.9", "1.9"),
        ("torch>=1.4\ntorchvision==0.10.0", "1.9", "1.9"),
    ],
)
def test_pins_that_exclude_each_other_leave_all_between(project, pins: str, oldest: str, newest: str):
    found = project({"requirements.txt": pins + "\n"})
    assert found.surely_at_least(oldest)
    assert not found.surely_at_least(f"1.{int(oldest[2:]) + 1}")
    assert found.may_be_at_least(newest)
    assert not found.may_be_at_least(f"1.{int(newest[2:]) + 1}")


def test_a_module_that_is_commented_out_is_not_loaded(project):
    """Where none is, it tells what was once new enough."""
    loaded = project({"job.sh": "# module load pytorch/1.4.0\nmodule load pytorch/1.9.0\npython train.py\n"})
    assert loaded.version.minor == "1.9"
    assert loaded.surely_at_least("1.9")
    left = project({"job.sh": "module load cuda\n  #module load pytorch/1.4.0\npython train.py\n"})
    assert left.surely_at_least("1.4")
    assert not left.surely_at_least("1.5")
    assert left.may_be_at_least("2.4")


@pytest.mark.parametrize(("torchtext", "torch"), [("0.8.0", "1.7"), ("0.7.0", "1.6"), ("0.6.0", None)])
def test_torchtext_with_compiled_code_goes_with_no_newer_torch(project, torchtext: str, torch: str | None):
    """Releases before have none: people put 0.6 beside any later torch."""
    found = project({"requirements.txt": f"torch\ntorchtext=={torchtext}\n"})
    assert found.source == "newest" if torch is None else found.version.minor == torch


@pytest.mark.parametrize(
    ("requirements", "below"),
    [
        ("torch==1.6.0\npytorch-lightning>=0.10\n", "1.5"),
        ("torch<2\nlightning>=1.6\n", "2.3"),
        ("torch\nlightning\n", None),
    ],
)
def test_an_old_torch_goes_with_no_newer_lightning(project, requirements: str, below: str | None):
    lightning = project({"requirements.txt": requirements}, package="lightning")
    assert lightning.may_be_at_least("2.3") is (below is None)
    assert below is None or not lightning.may_be_at_least(below)


def test_a_pinned_transformers_is_told_apart_from_what_its_torch_leaves(project):
    files = {"requirements.txt": "torch==1.8.1\ntransformers==4.46.3\n"}
    assert project(files, package="transformers").surely_at_least("4.46")


@pytest.mark.parametrize(
    "files",
    [
        {"environment.yml": "dependencies:\n  - python=3.11\n"},
        {"README.md": "## Requirements\n\n- Python 3.6+\n- PyTorch\n"},
        {"README.md": "## Requirements\n\n- Python >= 3.6\n- at least Python 3.7\n- Python 3.5 & up\n"},
        {"requirements.txt": "numpy>=1.19.2\ntorch\n"},
        {"README.md": "```\nconda install numpy==1.19.2 pytorch\n```\n"},
        {"requirements.txt": "numpy=1.19.2=py39h089b984_0\ntorch\n"},
        {"requirements.txt": "timm>=0.3.2\ntorch\n"},
        {"requirements.txt": "timm==0.4.12\nfastai==2.1.5\nxformers\n"},
        {"requirements.txt": "timm==0.3.2\n", "README.md": "## Requirements\n\n- PyTorch 2.6\n"},
        {"environment.yml": "dependencies:\n  - pytorch\n  - cudatoolkit=11.8\n"},
        {
            "README.md": "## Requirements\n\n- PyTorch\n- CUDA 10.1 or newer\n- at least CUDA 9.0\n- CUDA >= 9.2\n- CUDA 11.1\n"
        },
        {"README.md": "## Requirements\n\n- PyTorch\n- CUDA 10.2 / 11.1\n"},
        {"setup.sh": "pip install torch --index-url https://download.pytorch.org/whl/cu128\n"},
        {"setup.sh": "pip install --pre torch --index-url https://download.pytorch.org/whl/nightly/cu118\n"},
        {"Dockerfile": "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04\nRUN pip install torch\n"},
        {"env.py": "import os\n\n# pytorch      1.10.2      py3.7_cuda10.2_cudnn7_0    pytorch\nROOT = os.getcwd()\n"},
        {"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.8"\ntorch = "*"\n'},
        {"pyproject.toml": '[project]\nname = "net"\nrequires-python = ">=3.7"\ndependencies = ["torch"]\n'},
        {"environment.yml": "dependencies:\n  - python=3.7\n", "requirements.txt": "torch>=2.0,<3"},
    ],
)
def test_another_python_leaves_the_newest(project, files: dict[str, str]):
    assert project(files).may_be_at_least("2.6")


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"requirements.txt": "torch-scatter -f https://data.pyg.org/whl/torch-1.7.0+cu101.html\n"}, "1.7"),
        ({"requirements.txt": "--find-links https://data.pyg.org/whl/torch-1.12.0%2Bcpu.html\ntorch>=1.8\n"}, "1.12"),
        (
            {"README.md": "```\npip install mmcv-full -f https://x.com/mmcv/dist/cu101/torch1.6.0/index.html\n```\n"},
            "1.6",
        ),
        (
            {"README.md": "```\nTORCH=1.4.0\npip install torch-sparse -f https://x.com/whl/torch-${TORCH}.html\n```\n"},
            "1.4",
        ),
        ({"install.sh": "pip install dgl --find-links=https://data.dgl.ai/wheels/torch-2.1/cu121/repo.html\n"}, "2.1"),
        (
            {"environment.yml": "dependencies:\n  - pip:\n    - -f https://data.pyg.org/whl/torch-1.9.1+cu111.html\n"},
            "1.9",
        ),
    ],
)
def test_lists_of_wheels_name_the_torch_they_are_for(project, files: dict[str, str], version: str):
    torch = project(files)
    assert torch.surely_at_least(version)
    assert not torch.may_be_at_least(Version(version).bumped(2))


def test_every_package_that_is_tied_to_torch_has_its_row():
    assert set(table("releases")["before_torch"]) == set(TIED_TO_TORCH)


def test_a_python_that_is_named_counts_beside_what_wheels_leave(project):
    files = {
        "requirements.txt": "matplotlib==3.5.1\ntorch\n",
        "README.md": "# Net\n\n## Requirements\n\n- Python 3.7\n",
    }
    assert not project(files).may_be_at_least("1.14")


@pytest.mark.parametrize("pinned", ["numpy>=1.18", "numpy<2", "vllm==0.2.0", "flair==0.9", "scikit-learn==0.4.0"])
def test_a_release_without_an_end_leaves_what_is_newest(project, pinned: str):
    files = {"requirements.txt": f"{pinned}\n"}
    assert project(files).may_be_at_least("2.10")
    assert project(files, package="transformers").may_be_at_least("5.0")


@pytest.mark.parametrize("audio", ["torchaudio>=0.10,<1.0", "torchaudio<0.14", "torchaudio<=0.13.1", "torchaudio<2"])
def test_torchaudio_has_no_release_between_its_own_numbers_and_those_of_torch(project, audio: str):
    assert project({"requirements.txt": f"torch\n{audio}\n"}).surely_below("2.0")
    assert project({"requirements.txt": "torch\ntorchaudio==0.13.1\n"}).surely_at_least("1.13")


def test_exact_pins_that_differ_count_before_a_loose_one(project):
    files = {"environment.yml": "dependencies:\n  - pytorch=1.8.1\n", "old.txt": "", "pip_list.txt": "torch 1.9.0\n"}
    torch = project({**files, "requirements.txt": "torch<2.0\n"})
    assert torch.surely_at_least("1.8")
    assert not torch.may_be_at_least("1.10")


@pytest.mark.parametrize("lightning", ["lightning>=2.0", "pytorch-lightning==2.1.0"])
def test_a_newer_lightning_that_is_named_holds(project, lightning: str):
    assert project({"requirements.txt": f"{lightning}\nlightning-bolts\n"}, package="lightning").surely_at_least("2.0")


def test_what_powershell_writes_is_read(project, tmp_path: Path):
    (tmp_path / "requirements.txt").write_text(OLD.replace("\n", "\r\n"), "utf-16")
    assert project({}).version == Version("1.10.2")


@pytest.mark.parametrize(
    ("files", "at", "version", "source"),
    [
        ({"Dockerfile": "FROM pytorch/pytorch:1.10.2-x\n", "requirements.txt": "torch==2.0.1"}, "a.py", "2.0.1", "requirements.txt:1"),
        ({"Dockerfile": "FROM pytorch/pytorch:1.10.2-x\n", "setup.py": "setup(install_requires=['torch>=1.6'])"}, "a.py", "1.10.2", "Dockerfile:1"),
        ({"Dockerfile": "FROM pytorch/pytorch:1.5-x\nRUN pip install -r r.txt\n", "r.txt": "torch>=1.4"}, "a.py", "1.5.1", "Dockerfile:1"),
        ({"Dockerfile": "FROM pytorch/pytorch:1.10.2-x\nRUN pip install torch==1.12.1\n"}, "a.py", "1.12.1", "Dockerfile:2"),
        ({"requirements.txt": "torch==2.4.0", "sub/Dockerfile": "FROM pytorch/pytorch:1.10.2-x\n"}, "sub/a.py", "1.10.2", "sub/Dockerfile:1"),
        ({"README.md": "pip install torch==1.7.1", "install.sh": "pip install torch==1.10.2"}, "a.py", "1.10.2", "install.sh:1"),
        ({"README.md": "pip install torch==1.7.1", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "a.py", "2.15.0", "setup.py:1"),
        ({"part/README.md": "## Requirements\n* torch == 1.7.1", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "part/a.py", "1.7.1", "part/README.md:2"),
        ({"part/README.md": "pip install 'torch>=1.7'", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "part/a.py", "2.15.0", "setup.py:1"),
        ({"part/README.md": "* torch == 1.7.1", "part/requirements.txt": "torch>=1.8"}, "part/a.py", "2.15.0", "part/requirements.txt:1"),
        ({".github/workflows/ci.yml": "- run: pip install torch==1.8.0", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "a.py", "2.15.0", "setup.py:1"),
        ({".circleci/Dockerfile": "FROM pytorch/pytorch:1.9.0-x", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "a.py", "2.15.0", "setup.py:1"),
        ({"noxfile.py": "session.install('torch==1.9.0')", "setup.py": "setup(install_requires=['torch>=1.8'])"}, "a.py", "2.15.0", "setup.py:1"),
        ({"INSTALL.txt": "conda install pytorch=1.9.0 -c pytorch"}, "a.py", "1.9.0", "INSTALL.txt:1"),
        ({"docs/install.md": "pip install torch==1.9.0"}, "a.py", "1.9.0", "docs/install.md:1"),
        ({"other/requirements.txt": "torch==1.8", "other/train.py": "", "requirements.txt": "torch==2.4.0"}, "a.py", "2.4.0", "requirements.txt:1"),
        ({"docker/Dockerfile.old": "FROM pytorch/pytorch:1.8.0-x\n", "docker/Dockerfile.new": "FROM pytorch/pytorch:1.10.2-x\n"}, "a.py", "1.10.2", "docker/Dockerfile.new:1"),
        ({"requirements.txt": "torch>=1.7\ntorchvision==0.11.3"}, "a.py", "1.10.2", "requirements.txt:2"),
        ({"requirements.txt": "torch>=1.8.1\ntorchaudio>=0.8,<2.1"}, "a.py", "2.0.1", "requirements.txt:2"),
        ({"requirements.txt": "torch>=2.2\ntorchaudio>=0.8,<2.1"}, "a.py", "2.15.0", "requirements.txt:1"),
    ],
)  # fmt: skip
def test_the_nearest_and_most_exact_holds(project, files: dict[str, str], at: str, version: str, source: str):
    target = project(files, at)
    assert (str(target.version), target.source) == (version, f"pin {source}")


@pytest.mark.parametrize(
    "files",
    [
        {"Dockerfile": "FROM ${BASE}\nRUN pip install torch==${TORCH}\n"},
        {"notes.txt": "torch>=1.4, torch 1.8 or later, torch 1.9+, torch with 1.5 GB\n"},
        {"changes.txt": "torch 1.4 came out"},
        {"pyproject.toml": "[tool.isort]\nknown_third_party = ['torch', 'torchvision']\n"},
        {"requirements.txt": "-r ../outside.txt\n-r /etc/passwd\n-c missing.txt\n"},
    ],
)
def test_what_pins_nothing(project, tmp_path: Path, files: dict[str, str]):
    assert project(files).source in {"installed", "newest"}


@pytest.mark.parametrize(
    "files",
    [
        {"docs/requirements.txt": "torch==1.8"},
        {"README.md": "Works like torch==1.8 did. pip install torch\n"},
        {"README.md": "+ PyTorch = 1.8.0 with GPU support"},
        {"Dockerfile": "FROM ${BASE}\n# pytorch/pytorch:1.8\n", "jobs/run.slurm": "NAME=pytorch1.8\n"},
        {"notes.txt": "torch==1.8", "conf/model.yaml": "model: torch==1.8"},
    ],
)
def test_what_nobody_understands_raises_a_doubt(project, files: dict[str, str]):
    """What only newer versions make true is told no more, and nothing that only older ones do."""
    target = project(files)
    assert (str(target.upper), target.hearsay, target.may_be_at_least("1.9")) == ("1.9", True, False)
    assert not target.surely_below("1.9")


@pytest.mark.parametrize(("name", "source"), [("notes.md", "newest"), ("README.md", "README.md")])
def test_above_a_project_without_git_a_readme_alone_is_read(tmp_path: Path, name: str, source: str):
    (tmp_path / name).write_text("# Setup\n\nInstall with torch==1.4\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "pyproject.toml").write_text('[project]\nname = "net"\n')
    forget_versions()
    target = target_of("torch", tmp_path / "net" / "train.py", tmp_path / "net")
    assert source in target.source


def test_links_out_of_the_project_and_what_cannot_be_read_are_left_alone(project, tmp_path: Path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "requirements.txt").write_text("torch==1.8")
    (tmp_path / "requirements.txt").symlink_to(outside / "requirements.txt")
    (tmp_path / "docker").symlink_to(outside)
    (tmp_path / "base.txt").symlink_to(tmp_path / "base.txt")
    os.mkfifo(tmp_path / "requirements-pipe.txt")
    (tmp_path / "requirements-large.txt").write_text("torch==1.8\n" + "#" * 2_000_000)
    (tmp_path / "Dockerfile").mkdir()
    assert project({"reqs.in": f"-r {outside}/requirements.txt\n-r base.txt"}).source in {"installed", "newest"}


@pytest.mark.parametrize(
    ("image", "torch"),
    [
        ("nvcr.io/nvidia/pytorch:23.10-py3", ">=2.1.0a0,<=2.1.0"),
        ("nvcr.io/nvidia/pytorch:23.05-py3", ">=2.0.0,<=2.0.0"),
        ("nvcr.io/nvidia/pytorch:18.12.1-py3", "<=1.2.0"),
        ("nvcr.io/nvidia/pytorch:25.09-py3", ">=2.8.0a0,<=2.10.0"),
        ("nvcr.io/nvidia/l4t-pytorch:r32.7.1-pth1.10-py3", "==1.10.*"),
        ("centre/pytorch:ngc-20.02-v2", ">=1.4.0a0,<=1.5.0"),
        ("registry.example.com/mirror/nvidia/pytorch:22.04-py3", ">=1.12.0a0,<=1.12.0"),
        ("me/pytorch:22.04", None),
        ("me/pytorch:1.13", "==1.13.*"),
        ("ghcr.io/x/pytorch:2.1.0", "==2.1.0"),
        ("rocm/pytorch:rocm5.2_ubuntu20.04_py3.7_pytorch_1.11.0", "==1.11.0"),
        ("gcr.io/deeplearning-platform-release/pytorch-gpu.1-13:latest", "==1.13.*"),
        ("pytorch/pytorch:latest", None),
        ("pytorch/torchserve:0.9.0-gpu", None),
    ],
)
def test_images(image: str, torch: str | None):
    name, _, tag = image.rpartition(":")
    assert dict(image_pins(name, tag)).get("torch") == torch


@pytest.mark.parametrize(
    ("image", "pins"),
    [
        ("huggingface/transformers-pytorch-gpu:4.21.0", {"transformers": "==4.21.0"}),
        ("huggingface/transformers-gpu:4.11.3", {"transformers": "==4.11.3"}),
        (
            "1.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-training:1.13.1-transformers4.26.0-gpu-py39",
            {"transformers": "==4.26.0", "torch": "==1.13.1"},
        ),
    ],
)
def test_the_images_of_transformers(image: str, pins: dict[str, str]):
    name, _, tag = image.rpartition(":")
    assert dict(image_pins(name, tag)) == pins


def test_a_dockerfile_from_an_image_of_transformers_says_nothing_of_torch(project):
    files = {"Dockerfile": "FROM huggingface/transformers-gpu:4.21.0\n"}
    assert project(files, package="transformers").surely_at_least("4.21")
    assert project(files).may_be_at_least("2.6")


@pytest.mark.parametrize(
    "line",
    [
        "git+https://github.com/huggingface/transformers.git@v4.21.0",
        "transformers @ git+https://github.com/huggingface/transformers@v4.21.0",
        "-e git+https://github.com/huggingface/transformers.git@v4.21.0#egg=transformers",
        "git+https://github.com/huggingface/transformers@v4.21-release",
        "git+ssh://git@github.com/someone/transformers.git@v4.21.0",
    ],
)
def test_the_tag_of_a_repository_is_a_version(project, line: str):
    found = project({"requirements.txt": f"{line}\n"}, package="transformers")
    assert found.surely_at_least("4.21")
    assert not found.may_be_at_least("4.22")


@pytest.mark.parametrize("revision", ["", "@main", "@refs/pull/4.21/head"])
def test_another_revision_of_a_repository_is_none(project, revision: str):
    files = {"requirements.txt": f"git+https://github.com/huggingface/transformers{revision}\n"}
    assert project(files, package="transformers").may_be_at_least("5.0")


@pytest.mark.parametrize(
    ("package", "files"),
    [
        ("transformers", {"requirements.txt": "transformers@git+https://github.com/someone/transformers-marked\n"}),
        (
            "transformers",
            {"requirements.txt": "transformers[torch] @ git+https://github.com/someone/marked.git@main\n"},
        ),
        ("transformers", {"requirements.txt": "torch\n-e git+https://github.com/someone/x.git@1#egg=transformers\n"}),
        ("transformers", {"requirements.txt": "git+ssh://git@github.com/someone/transformers-marked.git\n"}),
        ("transformers", {"requirements.txt": "git+https://github.com/huggingface/transformers@3c2d1f0\n"}),
        ("transformers", {"requirements.txt": "https://github.com/someone/transformers/archive/refs/heads/main.zip\n"}),
        ("transformers", {"README.md": "```\npip install git+https://github.com/someone/my_transformers\n```\n"}),
        ("transformers", {"run.sh": "pip install -e ./deps/transformers\n"}),
        ("trl", {"pyproject.toml": '[tool.poetry.dependencies]\ntrl = {git = "https://github.com/someone/trl"}\n'}),
        ("trl", {"setup.py": "setup(install_requires=['trl @ git+https://github.com/someone/trl'])\n"}),
        ("lightning", {"env.yml": "dependencies:\n- pip:\n  - git+https://github.com/someone/pytorch-lightning@x\n"}),
        (
            "torch",
            {"Dockerfile": "FROM python:3.10\nRUN pip install 'torch @ git+https://github.com/someone/pytorch'\n"},
        ),
    ],
)
def test_a_fork_has_no_version(project, package: str, files: dict[str, str]):
    target = project(files, package=package)
    assert target.hearsay
    assert not target.may_be_at_least(
        "4.0" if package == "lightning" else "4.30" if package == "transformers" else "1.1"
    )


@pytest.mark.parametrize(
    "line",
    [
        "git+https://github.com/someone/sentence-transformers",
        "git+https://github.com/someone/x",
        "./data/transformers.py",
    ],
)
def test_another_library_is_no_fork(project, line: str):
    assert project({"requirements.txt": f"{line}\n"}, package="transformers").may_be_at_least("5.0")


def test_the_image_of_lightning():
    assert dict(image_pins("pytorchlightning/pytorch_lightning", "2.0.4-py3.10-torch2.0")) == {
        "pytorch-lightning": "==2.0.4",
        "torch": "==2.0.*",
    }


# --------------------------------------------------------------------------------------------------------- the parsers

releases = st.tuples(st.integers(1, 2), st.integers(0, 12), st.integers(0, 3)).map("{0[0]}.{0[1]}.{0[2]}".format)
breaks = st.sampled_from([" ", " \\\n    ", "  \\\n  # a comment\n  ", " \\\n\n "[:3] + "  "])
tools = st.sampled_from(
    [
        "pip install",
        "pip3 install --no-cache-dir",
        "python3 -m pip install -q",
        "uv pip install --system",
        "pip install -f https://x/y.html",
    ]
)
quotes = st.sampled_from(["{}", "'{}'", '"{}"'])


@given(releases, releases, tools, breaks, breaks, quotes, st.booleans())
def test_a_dockerfile_says_what_it_installs(torch, lightning, tool, first, second, quote, by_variable: bool):
    said = "${V}" if by_variable else torch
    text = f"FROM nvidia/cuda:11.3.1\nARG V={torch}\nRUN apt-get update && {tool}{first}{quote.format(f'torch=={said}')}{second}numpy "
    text += f"&& {tool}{second}{quote.format(f'pytorch-lightning=={lightning}')}\nCOPY . .\n"
    found = {pin.name: pin for pin in dockerfile_pins(Path("Dockerfile"), text)}
    assert {name: pin.specifier for name, pin in found.items()} == {
        "cuda": "11.3",
        "torch": f"=={torch}",
        "pytorch-lightning": f"=={lightning}",
    }
    rows = text.splitlines()
    assert f"torch=={said}" in rows[found["torch"].row - 1]
    assert lightning in rows[found["pytorch-lightning"].row - 1]


@given(st.text(alphabet="torchpinsal=<>~ \\\n\"'&|;#$%{}()[]:-1.0@/FROM", max_size=80))
def test_no_text_breaks_the_readers(text: str):
    for whole in (text, f"pip install {text}", f"RUN conda install {text}", f"FROM {text}"):
        file = Path("x")
        pins = [*dockerfile_pins(file, whole), *readme_pins(file, whole), *requirement_pins(file, whole)]
        pins += text_pins(file, whole, Kind.SCRIPT)
        last = len(whole.splitlines())
        assert all(1 <= pin.row <= last for pin in pins)
        assert [row for line in lines_of(whole) for row, _ in line.rows] == sorted(
            {row for line in lines_of(whole) for row, _ in line.rows}
        )


# ------------------------------------------------------------------------------------------------------- whole programs


def said(tmp_path: Path, monkeypatch, capsys, *arguments: str) -> tuple[int, str]:
    forget_versions()
    monkeypatch.chdir(tmp_path)
    status = run_command([*arguments, "--output-format", "concise"])
    return status, capsys.readouterr().out


def test_a_program_with_its_dockerfile_is_clean_until_the_dockerfile_changes(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "docker").mkdir()
    image = tmp_path / "docker" / "Dockerfile.gpu"
    image.write_text("FROM pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\nRUN pip install pytorch-lightning==1.5.10\n")
    assert said(tmp_path, monkeypatch, capsys, "train.py") == (0, "No findings in 1 file.\n")
    image.write_text("FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nRUN pip install pytorch-lightning==2.5.0\n")
    status, text = said(tmp_path, monkeypatch, capsys, "train.py", "--notes")
    assert status == 1
    assert {"LL506", "LL701", "LL702"} <= set(text.split())
    image.unlink()
    (tmp_path / "docker" / "requirements.txt").write_text(OLD)
    assert said(tmp_path, monkeypatch, capsys, "train.py")[0] == 0


def test_a_fix_waits_for_the_oldest_version_that_is_allowed(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text("import torch\nfrom torch.cuda.amp import GradScaler\n\nscaler = GradScaler()\n")
    (tmp_path / "Dockerfile").write_text("FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n")
    (tmp_path / "requirements.txt").write_text("torch>=2.0")
    assert "repaired" not in said(tmp_path, monkeypatch, capsys, "train.py", "--notes", "--no-cache")[1]
    (tmp_path / "requirements.txt").write_text("torch>=2.3")
    assert "1 can be repaired" in said(tmp_path, monkeypatch, capsys, "train.py", "--notes", "--no-cache")[1]


NEWER = re.compile(
    r"weights_only=|torch\.amp\.|use_reentrant|return_complex|weights\w*=|torch\.func\.|linalg|ddp_notebook|-mixed"
    r"|use_distributed_sampler|enable_\w+=|devices=|dataloaders=|persistent=|ignore=|profilers|core\.module"
)


@pytest.mark.parametrize("third", [0, *(pytest.param(third, marks=pytest.mark.slow) for third in (1, 2))])
def test_no_rule_s_fix_writes_what_an_allowed_version_lacks(third: int, tmp_path: Path):
    settings = {"target": {"torch": ">=1.5", "lightning": ">=1.0"}}
    cases = [(page, example) for page in all_pages().values() if page.fix for example in examples(page)]
    cases = cases[third::3]
    wrong, offered = [], 0
    for number, (page, example) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        example.write(folder)
        own = load({**example.settings, "select": [page.code], **settings}, isolated=True)
        for path in sorted(folder.rglob("*.py")):
            for finding in lint(load_source(path), own, Projects()).findings:
                edits = finding.fix.edits if finding.fix else ()
                offered += bool(edits)
                wrong += [(page.code, edit.content) for edit in edits if NEWER.search(edit.content)]
    assert wrong == []
    assert offered > len(cases) / 4


def test_show_settings_says_what_was_taken_from_where(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(install_requires=['torch>=1.6'])\n")
    (tmp_path / "Dockerfile").write_text("FROM pytorch/pytorch:1.10.2-cuda11.3-cudnn8-runtime\n")
    (tmp_path / "README.md").write_text("pip install torch==1.7.1 pytorch-lightning==1.5.10\n")
    status, text = said(tmp_path, monkeypatch, capsys, "--show-settings", "train.py", "--ignore", "LL506")
    assert status == 0
    lines = text.splitlines()
    assert lines[0] == "train.py"
    assert "  settings file: none" in lines
    assert any(line.startswith("  rules: ") and line.endswith("off: LL506") for line in lines)
    at = lines.index("  torch: 1.10.2")
    end = next(number for number, line in enumerate(lines) if line.startswith("  transformers: "))
    assert lines[at + 1 : end] == [
        "    from Dockerfile:1: torch==1.10.2, a container",
        "    fixes keep to what the project allows: >=1.6",
        "    also seen: setup.py:2: torch>=1.6, what the project declares",
        "    also seen: README.md:1: torch==1.7.1, a README",
        "  lightning: 1.5.10",
        "    from README.md:1: pytorch-lightning==1.5.10, a README",
    ]
    assert "the setting `target.torch`" in said(tmp_path, monkeypatch, capsys, "--show-settings", "--target-torch=2")[1]
    assert said(tmp_path, monkeypatch, capsys, "--show-settings", "missing.py")[0] == 2


@pytest.mark.parametrize("package", ["transformers", "trl", "peft", "accelerate"])
def test_requirements_that_name_no_torch_are_read(package: str, tmp_path: Path) -> None:
    """Many projects on Transformers leave torch to it."""
    forget_versions()
    (tmp_path / "requirements.txt").write_text(f"datasets==3.1.0\n{package}==1.2.3\nwandb\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    target = target_of(package, tmp_path / "train.py", tmp_path)
    assert (target.source, target.lower) == ("pin requirements.txt:2", Version("1.2.3"))


@pytest.mark.parametrize("script", ["job_finetune.sh", "train_lora.slurm", "run_sft.sh"])
def test_jobs_that_install_ahead_of_training_are_read(script: str, tmp_path: Path) -> None:
    """On clusters the job installs what it runs with."""
    forget_versions()
    (tmp_path / script).write_text(
        '#!/bin/bash\npip install --no-cache-dir \\\n  "transformers==4.41.2" \\\n  trl==0.9.4\npython train.py\n'
    )
    (tmp_path / "train.py").write_text("print(1)\n")
    assert target_of("trl", tmp_path / "train.py", tmp_path).lower == Version("0.9.4")
    assert target_of("transformers", tmp_path / "train.py", tmp_path).lower == Version("4.41.2")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"job.slurm": "#SBATCH -n 1\nmodule load cuda/10.1 pytorch/1.4.0\n"}, id="a module of a cluster"),
        pytest.param({"a.sub": "ml PyTorch/1.4.0-fosscuda-2019b-Python-3.7.4\n"}, id="a module, in short"),
        pytest.param({"README.md": "```\nmodule load PyTorch/1.4.0\n```\n"}, id="a module in a README"),
        pytest.param({"go.sh": "source activate pytorch1.4\n"}, id="the name of an environment"),
        pytest.param({"scripts/a.slurm": "ENVIRONMENT=pytorch1.4\nconda activate $ENVIRONMENT\n"}, id="in a variable"),
        pytest.param({"go.sh": "export V=/home/me/envs/torch-1.4\nsource ${V}/bin/activate\n"}, id="by its folder"),
        pytest.param({"go.sh": "conda run --no-capture-output -n torch1.4 python train.py\n"}, id="for one command"),
        pytest.param({"a.sub": "MODULE=PyTorch/1.4.0\nmodule load $MODULE\n"}, id="a module in a variable"),
        pytest.param({"README.md": "```\nfloyd run --gpu --env pytorch-1.4 'python train.py'\n```\n"}, id="FloydHub"),
        pytest.param({"go.sh": "srun --container-image=nvcr.io#nvidia/pytorch:20.02-py3 python train.py\n"}, id="enroot"),
        pytest.param({"go.sh": "singularity exec --nv /c/pytorch_1.4.0-cuda10.1.sif python a.py\n"}, id="an image's file"),
        pytest.param({"job.slr": "#SBATCH --image=centre/pytorch:ngc-20.02-v2\n"}, id="NVIDIA's image, handed on"),
        pytest.param({"job.lsf": "shifter --image=docker:centre/pytorch:ngc-20.02 python a.py\n"}, id="Shifter"),
        pytest.param({"Readme.cluster": "salloc -n 1 --image=centre/pytorch:ngc-20.02-v1 -N 1\n"}, id="a README of a cluster"),
        pytest.param({"env.source": "module load pytorch/1.4.0\n"}, id="a file to be sourced"),
        pytest.param({"go.sh": "singularity exec --nv pytorch_20.02-py3.sif python a.py\n"}, id="a file of NVIDIA's image"),
        pytest.param({"job.yaml": "imageUri: gcr.io/deeplearning-platform-release/pytorch-gpu.1-4\n"}, id="without a tag"),
        pytest.param({"Dockerfile": "FROM gcr.io/deeplearning-platform-release/pytorch-gpu.1-4\n"}, id="from without a tag"),
        pytest.param({"vm.sh": "gcloud compute instances create x --image-family=pytorch-1-4-cu101\n"}, id="a machine"),
        pytest.param({"cluster.yaml": "setup_commands:\n  - pip install torch==1.4.0\n"}, id="a file of a cluster"),
        pytest.param({"exp.sh": "pip install torch==1.4.0\n"}, id="a script of any name"),
        pytest.param({"binder/postBuild": "pip install torch==1.4.0\n"}, id="Binder"),
        pytest.param({".binder/environment.yml": "dependencies:\n  - pytorch=1.4.0\n"}, id="a hidden folder of Binder"),
        pytest.param({"tpu.sh": "pip install https://x/tpu-pytorch/wheels/torch_xla-1.4-cp36-cp36m-linux_x86_64.whl\n"}, id="XLA"),
        pytest.param({"requirements.txt": "numpy\n# torch==1.4.0 (install it by hand)\n"}, id="in a comment"),
        pytest.param({"requirements.txt": "numpy (1.17.0)\ntorch (1.4.0)\n"}, id="an old pip list"),
        pytest.param({"requirements.txt": "python: 3.6\npytorch: 1.4.0\n"}, id="with a colon"),
        pytest.param({"requirements.txt": "python-3.6\npytorch-1.4\n"}, id="with a hyphen"),
        pytest.param({"versions.txt": "torch==1.4.0\n"}, id="a list of versions"),
        pytest.param({"installed.txt": "torch==1.4.0\n"}, id="what is installed"),
        pytest.param({"docs/setup.md": "## Requirements\n- PyTorch 1.4.0\n"}, id="a page on setting up"),
        pytest.param({"README.md": "## 环境\npytorch版本:1.4.0\n"}, id="in Chinese"),
        pytest.param({"README.org": "* x\n** Requirements\n- PyTorch 1.4.0\n"}, id="org mode"),
        pytest.param({"mlruns/0/a/artifacts/model/conda.yaml": "dependencies:\n- pip:\n  - torch==1.4.0\n"}, id="MLflow"),
        pytest.param({"launch_job.py": "from sagemaker.pytorch import PyTorch\nPyTorch(entry_point='train.py', framework_version='1.4.0')\n"}, id="SageMaker"),
        pytest.param({"modal_app.py": "import modal\nimage = modal.Image.debian_slim().pip_install('torch==1.4.0')\n"}, id="Modal"),
        pytest.param({"colab.ipynb": '''{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": ["!pip install torch==1.4.0\\n", "!python train.py"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}'''}, id="a notebook that runs scripts"),
        pytest.param({"run.slurm": "module load pytorch-gpu/py3/1.4.0\npython train.py\n"}, id="a module with its Python"),
    ],
)  # fmt: skip
def test_what_jobs_and_lists_say_is_read(project, files: dict[str, str]):
    torch = project(files)
    assert torch.lower is not None, torch
    assert torch.lower.minor == "1.4", torch
    assert not torch.may_be_at_least("1.5.1"), torch


@pytest.mark.parametrize(
    "text",
    [
        "# python 3.6, PyTorch 1.4.0\n",
        '"""Training.\n\nRequirements:\n  - python 3.6\n  - PyTorch 1.4\n"""\n',
        "import os\nos.system('pip install torch==1.4.0')\n",
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'torch==1.4.0'])\n",
    ],
)
def test_a_script_says_what_it_is_for(tmp_path: Path, text: str):
    file = tmp_path / "train.py"
    file.write_text(f"{text}import torch\n", "utf-8")
    forget_versions()
    torch = target_of("torch", file, tmp_path, pip_lines=said_by(load_source(file)))
    assert torch.version.minor == "1.4", torch


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"go.sh": "module load python/3.7 cuda/10.1\nsource activate pytorch36\n"}, id="no torch's number"),
        pytest.param({"go.sh": "# conda activate py37\nconda activate happy385\n"}, id="no Python's number"),
        pytest.param({".github/ISSUE_TEMPLATE/bug_report.md": " - PyTorch Version (e.g., 1.4):\n"}, id="a form"),
        pytest.param({".github/ISSUE_TEMPLATE/bug.yml": "body:\n- pip install torch==1.4.0\n"}, id="another form"),
        pytest.param({"README.md": "# Net\n## Report bugs\n - PyTorch version (e.g., 1.4):\n"}, id="a form in a README"),
        pytest.param({"a.ipynb": '''{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": ["!pip install torch==1.4.0\\n", "!python train.py"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}'''.replace("!python train.py", "1")}, id="a notebook for itself"),
        pytest.param({"launch.py": "PyTorch(framework_version='1.4.0')\n"}, id="a script of its own"),
    ],
)  # fmt: skip
def test_what_says_nothing_of_the_project(project, files: dict[str, str]):
    assert project(files).source == "newest"


def test_where_code_comes_from_says_nothing(tmp_path: Path):
    file = tmp_path / "train.py"
    file.write_text('"""A sampler, adapted from PyTorch 0.4."""\nimport torch\n', "utf-8")
    assert said_by(load_source(file)) == ()


def test_what_imports_bolts_runs_with_lightning_1(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("pytorch-lightning>=1.4\n")
    (tmp_path / "callbacks.py").write_text("from pl_bolts.callbacks import PrintTableMetricsCallback\n")
    module = "class M(pl.LightningModule):\n    def training_epoch_end(self, outputs): ...\n"
    (tmp_path / "train.py").write_text(f"import pytorch_lightning as pl\n\n\n{module}")
    forget_versions()
    assert lint(load_source(tmp_path / "train.py"), load({}, isolated=True), Projects()).findings == ()


@pytest.mark.parametrize(
    ("imports", "version"),
    [
        ("import pytorch_lightning as pl", "1.7.7"),
        ("from pytorch_lightning.callbacks import Callback", "1.7.7"),
        ("import lightning as L", "2.0.8"),
        ("import lightning.pytorch as pl\nimport pytorch_lightning", "2.0.8"),
    ],
)
def test_the_distribution_that_code_imports_decides(tmp_path: Path, imports: str, version: str):
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("lightning=2.0.8=pypi_0\npytorch-lightning=1.7.7=pypi_0\n")
    (tmp_path / "train.py").write_text(f"{imports}\n")
    forget_versions()
    words = said_by(load_source(tmp_path / "train.py"))
    assert target_of("lightning", tmp_path / "train.py", tmp_path, pip_lines=words).version == Version(version)


def test_code_of_python_2_bounds_torch_for_what_stands_beside_it(project) -> None:
    old = "import model\nfor name in range(3):\n    print 'row', name\n"
    assert project({"bench.py": old}).upper == Version("1.5")
    assert project({"bench.py": old, "requirements.txt": "torch>=1.9\n"}).upper is None
    assert project({"bench.py": old, "pkg/new.py": "import torch\n"}, at="pkg/new.py").source.startswith("pin")
    fresh = "text = '''\nprint this\n'''\nprint(text)\n"
    assert project({"bench.py": fresh, "requirements.txt": "numpy\n"}).source in ("newest", "installed")


@pytest.mark.parametrize(
    ("files", "end"),
    [
        pytest.param({"suite/run.py": "", "suite/requirements.txt": "torch==1.8.1\n"}, "1.9", id="a neighbour"),
        pytest.param({"a/b/net.py": "", "a/b/requirements.txt": "torch~=1.8.0\n"}, "1.9", id="deep"),
        pytest.param(
            {"a/x.py": "", "a/reqs.txt": "torch==1.8.1", "b/x.py": "", "b/reqs.txt": "torch==2.1.0"},
            "1.9",
            id="the older",
        ),
        pytest.param(
            {
                "README.md": "## Setup\n\nFollow the instructions of [Net](https://github.com/a/net) to set up PyTorch.\n"
            },
            "1.1",
            id="elsewhere",
        ),
        pytest.param(
            {
                "README.md": "PyTorch. We build on [Net](https://github.com/a/net). Please refer to its repo for installation."
            },
            "1.1",
            id="elsewhere in the next sentence",
        ),
        pytest.param(
            {"README.md": "## Environment\n\n```\ndocker pull somebody/pytorch:latest\n```\n"},
            "1.1",
            id="image of somebody",
        ),
        pytest.param({"run.sh": "singularity exec /x/pytorch1.4.0-py3.simg python train.py\n"}, "1.5", id="image"),
        pytest.param({"old.py": "y = x.cuda(async=True)\n"}, "1.11", id="async"),
        pytest.param({"run.py": 'import timm\n\nassert timm.__version__ == "0.3.2"\n'}, "1.9", id="an assertion"),
        pytest.param(
            {
                "README.md": "# Net\n\n```\ncd net/Base.kit\npip install -r requirements.txt\n```\n",
                "Base.kit/kit.py": "",
                "Base.kit/README.md": "```\nconda create -n kit python=3.8\nconda install pytorch torchvision cudatoolkit=10.2\n```\n",
            },
            "1.13",
            id="a folder that the README sends to",
        ),
    ],
)
def test_what_speaks_of_an_older_version_anywhere_leaves_nothing_certain(project, files: dict[str, str], end: str):
    torch = project(files)
    assert not torch.may_be_at_least(end)
    assert torch.may_be_below(end)
    assert not torch.surely_below(end) or "run.sh" in files


@pytest.mark.parametrize(
    ("files", "at"),
    [
        pytest.param(
            {"a/reqs.txt": "torch==2.1.0\n", "b/x.py": "", "b/reqs.txt": "torch==1.8\n"}, "a/x.py", id="its own"
        ),
        pytest.param({"a/reqs.txt": "torch==2.1.0\n", "README.md": "PyTorch 1.8 is needed."}, "a/x.py", id="nearer"),
        pytest.param(
            {"uv.lock": '[[package]]\nname = "torch"\nversion = "2.1.0"\n', "README.md": "- PyTorch 1.8\n"},
            "x.py",
            id="lock",
        ),
        pytest.param(
            {"README.md": "PyTorch. See [Net](https://github.com/a/net) for more on the environment."}, "x.py", id="see"
        ),
        pytest.param(
            {"README.md": "PyTorch. Install apex according to [its repo](https://github.com/a/b#installation-guide)."},
            "x.py",
            id="a package",
        ),
        pytest.param(
            {"README.md": "PyTorch >= 1.8", "b/reqs.txt": "torch>=1.4\n", "b/x.py": ""}, "x.py", id="bounds from below"
        ),
    ],
)
def test_what_is_said_of_others_leaves_the_version_of_a_file(project, files: dict[str, str], at: str):
    assert project(files, at).may_be_at_least("2.1")
