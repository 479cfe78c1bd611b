"""Transformers and Diffusers: models and tokenizers as they are loaded, and what is asked of them."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events import Halved
from lightlint.engine.events.huggingface import EmbeddingsResized, Generated, Merged
from lightlint.engine.machine import Machine
from lightlint.frameworks.huggingface.tokenizers import tokenizer
from lightlint.frameworks.huggingface.values import dtype_of, is_quantized, name_of
from lightlint.models.names.huggingface import QUANTIZATION
from lightlint.models.registry import methods, of_pretrained, package
from lightlint.models.training import modules
from lightlint.values.core import NONE, Constant, Library, NoneOf, Unknown, Value, is_constant, text_of
from lightlint.values.training import Module

_TOKENIZERS = re.compile(r"Tokenizer(?:Fast)?$|Processor$")
_OF_TRANSFORMERS = re.compile(r"(?!TF[A-Z]|Flax)[A-Z]\w*(?:Model|For[A-Z][A-Za-z]+)")
_NO_MODELS = re.compile(r"Config$|FeatureExtractor$|Scheduler$|Pipeline$")


@package("transformers")
def transformers(machine: Machine, path: str, given: Arguments, node: ast.AST) -> Value | None:
    """A class of Transformers that is a network, or a class method."""
    owner, _, last = path.rpartition(".")
    if _OF_TRANSFORMERS.fullmatch(last):
        return model(machine, path, "__init__", given, node)
    owner = owner.rpartition(".")[2]
    if last not in ("from_pretrained", "from_config") or not owner[:1].isupper():
        return None
    if _TOKENIZERS.search(owner):
        return tokenizer(machine, owner, given, node)
    if owner.endswith("Config"):
        config = machine.instance(Library(f"transformers.{owner}"), "namespace", node)
        config.attributes = dict(given.keywords)
        config.open_arguments = not given.exact
        return config
    if _NO_MODELS.search(owner):
        return None
    return model(machine, f"transformers.{owner}", last, given, node)


@package("diffusers")
def diffusers(machine: Machine, path: str, given: Arguments, node: ast.AST) -> Value | None:
    """A class of Diffusers, or a class method, that makes a network."""
    owner, _, last = path.rpartition(".")
    if _NETWORKS.fullmatch(last):
        return model(machine, path, "__init__", given, node)
    name = owner.rpartition(".")[2]
    made_so = last in ("from_pretrained", "from_config", "from_single_file", "from_unet")
    return model(machine, f"diffusers.{name}", last, given, node) if made_so and _NETWORKS.fullmatch(name) else None


_NETWORKS = re.compile(r"(?!EMA|VQ|Autoencoder)[A-Z]\w*Model")
"""Networks of Diffusers that give a tensor: others give distributions."""
RESIZED = "#resized"
"""Under which name a model keeps that its embeddings were given other sizes."""


def model(machine: Machine, path: str, how: str, given: Arguments, node: ast.AST) -> Module:
    """A model whose layers are out of sight: loaded, it is in eval mode."""
    made = modules.opaque(machine, node, path)
    made.arguments = given.by_name()
    made.open_arguments = not given.exact
    if how == "from_pretrained":
        made.training = False
    if "device_map" in given.keywords or not given.exact:
        modules.move(made, None)
    if dtype_of(made) == "float16" and not is_quantized(made):
        where = machine.where(node)
        keyword = "dtype" if "dtype" in given.keywords else "torch_dtype"
        site = given.said.get(keyword, where.site)
        asked_at = (keyword, site if site[0] == where.site[0] else where.site)
        machine.emit(Halved(where, made, made.parameters(), asked_at))
    return made


# checkpoints whose configuration has dropout, and classes whose configuration has it by default
_WITH_DROPOUT = re.compile(
    r"(?:[\w.-]+/)?(?:(?:distil|xlm-|code|legal-)?(?:bert|roberta)-(?:base|large)|electra-(?:small|base|large)-|(?:distil)?gpt2\b|"
    r"(?:flan-|m|code)?t5-(?:small|base|large|v1_1)|m?bart-(?:base|large)|deberta-(?:base|large|v3-)|opt-\d|wav2vec2-base|mpnet-base)"
)
_OF_DROPOUT = re.compile(
    r"(?:Bert|Roberta|XLMRoberta|DistilBert|Electra|GPT2|T5|MT5|Bart|MBart|Deberta|DebertaV2|Longformer|MPNet|Wav2Vec2|Hubert)"
    r"(?:Model|For[A-Z]|LMHead|DoubleHeads|Encoder)"
)


def surely_drops(model: Module) -> bool:
    """Whether a model that was loaded surely drops something when it is trained: an argument says so, its name or its class."""
    owner, _, _ = model.cls.path.partition(".") if isinstance(model.cls, Library) else ("", "", "")
    if owner != "transformers" or model.open_arguments:
        return False
    rates = [value for name, value in model.arguments.items() if "drop" in name]
    if rates or "config" in model.arguments:
        return bool(rates) and not any(is_constant(each, 0, 0.0) for each in rates)
    name = name_of(model)
    return bool(_WITH_DROPOUT.match(name or "") or _OF_DROPOUT.match(model.name))


@of_pretrained(
    "resize_token_embeddings", "set_input_embeddings", "get_input_embeddings", "get_output_embeddings", "generate", "merge_and_unload", "unload", "set_adapter", "load_adapter", "add_adapter",
    "enable_adapters", "half", "float", "bfloat16", "double", "to", "print_trainable_parameters",
    "gradient_checkpointing_enable", "enable_input_require_grads",
)  # fmt: skip
def model_method(machine: Machine, held: Module, name: str, given: Arguments, node: ast.AST) -> Value | None:
    """What a pretrained model has and no other module; None for the rest."""
    if name in ("resize_token_embeddings", "set_input_embeddings"):
        machine.emit(EmbeddingsResized(machine.where(node), held))
        held.unwrapped().attributes[RESIZED] = NONE
        return Unknown(hint="embeddings")
    if name in ("get_input_embeddings", "get_output_embeddings"):
        return modules.part_of(machine, held.unwrapped(), name.removeprefix("get_"), node)
    if name == "generate":
        machine.emit(Generated(machine.where(node), held, given))
        found = machine.tensor(node)
        found.leaf, found.device, found.guessed = False, held.device, True
        return found
    if name in ("merge_and_unload", "unload") and held.wrapper == "adapter":
        if name == "merge_and_unload":
            machine.emit(Merged(machine.where(node), held))
        return held.wraps or Unknown()  # with or without what the adapter has learnt
    if name in ("set_adapter", "load_adapter", "add_adapter", "enable_adapters") and held.wrapper == "adapter":
        for each in held.own:
            each.requires_grad = True
        return NONE
    if name in ("print_trainable_parameters", "gradient_checkpointing_enable", "enable_input_require_grads"):
        return NoneOf(name)
    if name in ("add_adapter", "load_adapter"):
        held.unwrapped().attributes["#dtype"] = Unknown()  # its weights may have another one
    dtype = _cast_to(name, given)
    if dtype is not None:
        held.unwrapped().attributes["#dtype"] = dtype
    return None


def _cast_to(name: str, given: Arguments) -> Value | None:
    """The dtype that a method casts a model to, unknown where it may cast it; None where it does not."""
    if name in _CASTS:
        return Constant(_CASTS[name])
    values = [each for each in given.values() if not is_place(each)] if name == "to" else []
    if not values:
        return None
    told = next((text for each in values if (text := text_of(each)) is not None), None)
    return Constant(told.removeprefix("torch.")) if told is not None else Unknown()


_CASTS = {"half": "float16", "float": "float32", "bfloat16": "bfloat16", "double": "float64"}


def is_place(value: Value) -> bool:
    """Whether a value is surely a device, and no dtype."""
    named = text_of(value)
    return (named is not None and not named.startswith("torch.")) or "dev" in getattr(value, "hint", "")


@methods(QUANTIZATION)
def method(_: Machine, __: Value, ___: str, ____: Arguments, _____: ast.AST) -> Value:
    """A method of a configuration."""
    return Unknown()
