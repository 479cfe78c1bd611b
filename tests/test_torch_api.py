"""The data on old names of torch and its companions: every entry loads, and the pages' gates let all of them through."""

from __future__ import annotations

import pytest

from lightlint.facts.releases.torch_api import old_name_in, old_names, vision_weights
from lightlint.facts.versions.versions import Version
from lightlint.pages import find


def test_every_entry_has_a_version_and_a_way_on():
    for name, entry in old_names().items():
        assert entry.torch_removed or entry.torch_deprecated, name
        assert entry.removed is None or entry.deprecated is None or entry.deprecated < entry.removed, name
        assert entry.fix in {"", "safe", "unsafe"}, name
        assert entry.replacement or not entry.fix, name
        assert entry.replacement != name


@pytest.mark.parametrize("gone", [True, False])
def test_the_gate_of_the_page_knows_every_name(gone):
    page = find("torch-removed-name" if gone else "torch-deprecated-name")
    assert page is not None
    words = page.needs.words()
    for name, entry in old_names().items():
        if entry.removed if gone else entry.deprecated and not entry.is_called_name:
            assert name.rpartition(".")[2] in words, name


def test_releases_of_companions_are_told_in_torch_releases():
    names = old_names()
    assert names["torchvision.transforms.Scale"].torch_removed == Version("1.11")
    assert names["torchvision.transforms.functional_tensor"].torch_removed == Version("2.2")
    assert names["torchaudio.info"].torch_removed == Version("2.9")


def test_modules_take_along_what_is_below_them():
    found = old_name_in("torchvision.transforms.functional_tensor.rgb_to_grayscale")
    assert found is not None
    assert found.name == "torchvision.transforms.functional_tensor"
    assert old_name_in("torch.symeig.anything") is None
    assert old_name_in("torchvision.transforms.functional") is None


@pytest.mark.parametrize(
    ("function", "parameter", "weights"),
    [
        ("torchvision.models.resnet18", "pretrained", "IMAGENET1K_V1"),
        ("torchvision.models.resnet.resnet18", "pretrained", "IMAGENET1K_V1"),
        ("torchvision.models.segmentation.fcn_resnet50", "pretrained", "COCO_WITH_VOC_LABELS_V1"),
        ("torchvision.models.segmentation.fcn.fcn_resnet50", "pretrained_backbone", "IMAGENET1K_V1"),
        ("torchvision.models.quantization.resnet18", "pretrained", None),
        ("torchvision.models.regnet_y_128gf", "pretrained", None),
        ("timm.models.resnet18", "pretrained", None),
    ],
)
def test_weights_of_vision_models(function, parameter, weights):
    assert vision_weights(function, parameter) == weights
