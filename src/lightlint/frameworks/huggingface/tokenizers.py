"""Tokenizers: what they make of texts, and what is asked of them."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.huggingface import Decoded, Encoded, TokensAdded
from lightlint.engine.machine import Machine
from lightlint.frameworks.huggingface.trainer import TOKENS
from lightlint.models.names.huggingface import COLLATOR, TOKENIZER
from lightlint.models.registry import attributes, calling, methods
from lightlint.models.sequences import masks
from lightlint.values.core import (
    END,
    NO_TRAITS,
    NONE,
    TEMPLATED,
    TRUE,
    Constant,
    Library,
    Mapping,
    Sequence,
    Unknown,
    Value,
    is_constant,
    text_of,
    traits_of,
    written,
)
from lightlint.values.training import Encoding, Instance

# models whose tokenizers have a `model_max_length`
_WITH_LENGTH = re.compile(
    r"(?:[\w-]+/)?(?:bert-(?:base|large)-|(?:xlm-)?roberta-(?:base|large)|distil(?:bert|roberta)-base|(?:distil)?gpt2|"
    r"t5-(?:small|base|large)|flan-t5-|albert-(?:x*large|base)|electra-(?:small|base|large)|bart-(?:base|large))"
)
ADDED = "#added"
"""Under which name a tokenizer keeps the tokens that were added, and where the last ones were."""


def tokenizer(machine: Machine, owner: str, given: Arguments, node: ast.AST) -> Instance:
    """A tokenizer, or a processor that has one."""
    made = machine.instance(Library(f"transformers.{owner}"), TOKENIZER, node)
    made.arguments = given.by_name()
    made.open_arguments = not given.exact
    return made


@attributes(TOKENIZER)
def token_of(machine: Machine, held: Value, name: str, node: ast.AST) -> Value | None:
    """An attribute of a tokenizer; None for a method."""
    assert isinstance(held, Instance)
    if name in ("tokenizer", "image_processor", "feature_extractor"):
        kind = held.name.replace("Processor", "Tokenizer") if held.name.endswith("Processor") else "PreTrainedTokenizer"
        part = tokenizer(machine, kind, Arguments(double_star=Unknown()), node)
        part.arguments.update(held.arguments)
        held.attributes[name] = part if name == "tokenizer" else Unknown(hint=name)
        return held.attributes[name]
    if name.startswith(("add_", "apply_", "get_", "convert_", "build_", "num_special", "prepare_", "sanitize_")):
        return None
    if name.endswith(("_token", "_token_id", "_tokens", "_ids", "_side", "_length", "_size", "template")):
        given = held.arguments.get(name)
        traits = END if name in ("eos_token", "eos_token_id") else NO_TRAITS
        plain = not name.startswith("pad_token")  # many have none
        if given is not None:
            return given
        found = Unknown(("of", held.key, name), traits, hint=name, plain=plain)
        found.given_by = held
        return found
    return None


@methods(TOKENIZER)
def tokenizer_method(machine: Machine, held: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a tokenizer."""
    assert isinstance(held, Instance)
    if name in ("add_tokens", "add_special_tokens"):
        named = given.get(0, "special_tokens_dict")
        if isinstance(named, Mapping):
            held.attributes.update({key: each for key, each in named.items.items() if isinstance(key, str)})
        machine.emit(TokensAdded(machine.where(node), held, given, name))
        before = held.attributes.get(ADDED)
        added = Sequence([*(before.items if isinstance(before, Sequence) else []), *given.values()])
        added.site = machine.site(node)
        held.attributes[ADDED] = added
        return Unknown(hint="added", plain=True)
    if name in ("decode", "batch_decode"):
        machine.emit(Decoded(machine.where(node), held, given.get(0, "token_ids") or given.get(0, "sequences")))
        return Unknown(hint="text", plain=name == "decode")
    if name in ("encode_plus", "batch_encode_plus", "__call__", "pad"):
        return encode(machine, held, given, node)
    if name == "apply_chat_template":
        return _chat(machine, held, given, node)
    if name == "encode" and "return_tensors" in given.keywords:
        found = encode(machine, held, given, node)
        return found.items["input_ids"] if isinstance(found, Mapping) else found
    if name in ("save_pretrained", "push_to_hub"):
        return NONE
    return Unknown(hint=name)


def _chat(machine: Machine, held: Instance, given: Arguments, node: ast.AST) -> Value:
    """What a chat template makes of messages: a text, ids or, where asked for, all that a model takes."""
    if not given.exact:
        return Unknown(hint="encoded")
    if is_constant(given.keywords.get("tokenize"), False):
        return Unknown(None, TEMPLATED, hint="text", plain=True)
    if "tokenize" in given.keywords and not is_constant(given.keywords["tokenize"], True):
        return Unknown(hint="encoded")
    found = encode(machine, held, given, node)
    asked = given.keywords.get("return_dict")
    if not isinstance(found, Mapping) or (asked is not None and not isinstance(asked, Constant)):
        return Unknown(hint="encoded")
    return found if is_constant(asked, True) else Unknown(hint="ids")


@calling(TOKENIZER)
def encode(machine: Machine, held: Instance, given: Arguments, node: ast.AST) -> Value:
    """What a tokenizer makes of a text: lists of ids by name, tensors where these are asked for."""
    encoding = _encoding(machine, held, given, node)
    if "return_tensors" not in given.keywords:
        return _listed(encoding) if given.exact else Unknown(hint="encoded")
    return encoded(machine, encoding, node)


def _encoding(machine: Machine, held: Instance, given: Arguments, node: ast.AST) -> Encoding:
    texts = (
        given.get(0, "text")
        or given.keywords.get("text_target")
        or given.get(0, "batch_text_or_text_pairs")
        or given.get(0, "encoded_inputs")
    )
    made = Encoding(machine.site(node), held, texts, dict(given.keywords))
    made.number = machine.clock = machine.clock + 1
    made.pads = _pads(held, given)
    made.several = _several(texts)
    made.side = _side(held, given)
    made.traits = _traits_in(texts)
    machine.emit(Encoded(machine.where(node), made))
    return made


def _pads(held: Instance, given: Arguments) -> bool | None:
    """Whether short texts are filled up: to `max_length` only where the call or the tokenizer has such a length."""
    padding = given.keywords.get("padding") or given.keywords.get("pad_to_max_length")
    pads = is_padding(padding) if given.exact else None
    whole = "padding" not in given.keywords or text_of(written(padding)) == "max_length"
    return None if pads and whole and not _has_length(held, given) else pads


def _has_length(held: Instance, given: Arguments) -> bool:
    """Whether a length to pad to is given, or known for the tokenizer: one that a project trained has none of its own."""
    length = given.keywords.get("max_length")
    name = text_of(written(held.arguments.get("pretrained_model_name_or_path") or held.arguments.get("#0")))
    told = "model_max_length" in held.arguments or "model_max_length" in held.attributes
    return (length is not None and not is_constant(length, None)) or told or bool(_WITH_LENGTH.match(name or ""))


def is_padding(value: Value | None) -> bool | None:
    """Whether a `padding` says that short texts are filled up, None for unknown."""
    found = written(value)
    if value is None:
        return False
    return None if found is None else found.value not in (False, None, "do_not_pad")


def _several(texts: Value | None) -> bool | None:
    """Whether several texts were given, None for unknown."""
    if isinstance(texts, Sequence):
        rows = texts.items and all(isinstance(each, Mapping) for each in texts.items)  # the messages of one talk
        if len(texts.items) > (texts.repeated is None) and all(each is texts.items[0] for each in texts.items):
            return False  # one text as often as answers are wanted: none is shorter
        return texts.kind in ("list", "tuple") and not rows and (texts.more or len(texts.items) > 1)
    return False if isinstance(texts, Constant) or (isinstance(texts, Unknown) and texts.plain) else None


def _traits_in(texts: Value | None) -> frozenset[str]:
    return traits_of(*texts.items) if isinstance(texts, Sequence) else traits_of(texts)


def _side(held: Instance, given: Arguments) -> str | None:
    """On which side it pads: "" where that is left to the tokenizer, None for unknown."""
    for where in (given.keywords, held.attributes, held.arguments):
        if "padding_side" in where:
            return text_of(written(where["padding_side"]))
    return None if held.escaped or held.open_arguments or not given.exact else ""


def _listed(encoding: Encoding) -> Mapping:
    ids = Sequence([_token(encoding, "token")], more=True)
    mask = Sequence([_token(encoding, "mask")], more=True)
    found = Mapping({"input_ids": ids, "attention_mask": mask}, more=True)
    if "text_target" in encoding.given and encoding.given["text_target"] is not encoding.texts:
        found.items["labels"] = Sequence([_token(encoding, "token")], more=True)
    found.encoding, encoding.rows = encoding, (ids, mask)
    return found


def _token(encoding: Encoding, name: str) -> Unknown:
    found = Unknown((name, encoding.number), plain=True)
    found.encoding = encoding
    return found


def encoded(machine: Machine, encoding: Encoding, node: ast.AST) -> Mapping:
    """The tensors of an encoding by name."""
    ids, mask = machine.tensor(node), machine.tensor(node)
    for each in (ids, mask):
        each.leaf, each.device, each.encoding = False, None, encoding
    ids.role = TOKENS
    mask.mask = masks.of_texts(machine.site(node))
    found = Mapping({"input_ids": ids, "attention_mask": mask}, more=True)
    found.encoding = encoding
    return found


@methods(COLLATOR)
def collator_method(machine: Machine, held: Value, name: str, given: Arguments, node: ast.AST) -> Value:
    """A method of a collator."""
    assert isinstance(held, Instance)
    return collate(machine, held, given, node) if name in ("torch_call", "__call__") else Unknown()


@calling(COLLATOR)
def collate(machine: Machine, held: Instance, given: Arguments, node: ast.AST) -> Value:
    """A batch: of a collator that only pads what the tokenizer gave, its tensors."""
    holder = held.argument("tokenizer", 0)
    if held.name != "DataCollatorWithPadding" or not isinstance(holder, Instance) or holder.kind != TOKENIZER:
        return Unknown(hint="batch")
    rows = given.get(0, "features") or Unknown()
    asked = Arguments([rows], {"padding": held.arguments.get("padding", TRUE)})
    encoding = _encoding(machine, holder, asked, node)
    encoding.several = True
    return encoded(machine, encoding, node)
