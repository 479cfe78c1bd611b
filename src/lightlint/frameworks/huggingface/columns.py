"""The columns of a table that a Trainer hands on, and those that it drops."""

from __future__ import annotations

import re

from lightlint.frameworks.huggingface.values import base_of, is_own, model_of, replaces, setting, settings_of
from lightlint.values.core import Class, Function, Library, Unknown, is_constant
from lightlint.values.training import Instance, Module

_OF_MODELS = re.compile(
    r"input|attention|token|position|head|decoder|encoder|pixel|label|past|output|use_|return_|cross|mask|bbox|box|start|end_"
    r"|next|mc_|global|lang|entity|visual|image|audio|speech|feature|query|spatial|task|class|num_|target|ids$"
)
"""What models call their arguments."""
_OF_KINDS = (
    (re.compile(r"For(?:Image|Video)Classification$"), r"pixel|labels?$|label_ids$|input|attention_mask|token|position|mask|spatial|output_|return_|use_|past"),
    (re.compile(r"For(?:SemanticSegmentation|ObjectDetection)$"), r"pixel|labels?$|label_ids$|_labels$|input|mask|encoder|decoder|token|output_|return_|class|task"),
    (re.compile(r"For(?:AudioClassification|CTC)$"), r"input_|labels?$|label_ids$|_mask$|encoder_|output_|return_"),
)  # fmt: skip
"""What those of pictures and of sounds call them: the modules of 4.54.1 and 5.24.0 have no others."""
_REPLACING = (
    "_set_signature_columns_if_needed",
    "_remove_unused_columns",
    "get_train_dataloader",
    "_get_dataloader",
    "_prepare_inputs",
    "_get_collator_with_removed_columns",
)


def drops(trainer: Instance, name: str) -> bool:
    """Whether a Trainer that narrows its rows surely leaves out a column."""
    model = base_of(model_of(trainer))
    return model is not None and not _takes(model, name)


def _takes(model: Module, name: str) -> bool:
    if isinstance(model.cls, Class):
        forward = model.cls.find("forward")
        if not isinstance(forward, Function):
            return True
        taken = forward.node.args
        return name in (
            "label",
            "label_ids",
            *(each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)),
        )
    known = next((names for kind, names in _OF_KINDS if kind.search(model.name)), None)
    return re.match(known, name) is not None if known is not None else _OF_MODELS.search(name) is not None


def narrows(trainer: Instance) -> bool:
    """Whether a Trainer surely hands on only those columns that its model takes."""
    settings, model, cls = settings_of(trainer), base_of(model_of(trainer)), trainer.cls
    names = trainer.libraries()
    if settings is None or model is None or not names or not names[0].startswith("transformers."):
        return False
    if (isinstance(cls, Class) and not cls.sees_all()) or replaces(trainer, *_REPLACING):
        return False
    known = not (settings.open_arguments or settings.escaped or model.escaped or model.open_arguments)
    asked = setting(settings, "remove_unused_columns")
    kept = asked is not None and not is_constant(asked, True)
    return known and _is_in_sight(model) and not kept and setting(settings, "label_names") is None


def _is_in_sight(model: Module) -> bool:
    """Whether what a model takes is known: of transformers' own ones, and of the program's."""
    if isinstance(model.cls, Class):
        return model.cls.sees_all() and isinstance(model.cls.find("forward"), Function)
    foreign = model.arguments.get("trust_remote_code")
    return (
        isinstance(model.cls, Library)
        and model.cls.path.startswith("transformers.")
        and (foreign is None or is_constant(foreign, False))
    )


def collates_itself(trainer: Instance) -> bool:
    """Whether a collator of the program, or one out of sight, makes the batches."""
    collator = trainer.argument("data_collator", 2)
    return collator is not None and (is_own(collator) or isinstance(collator, Unknown))
