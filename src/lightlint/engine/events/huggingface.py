"""What the Hugging Face libraries do."""

from __future__ import annotations

from dataclasses import dataclass, field

from lightlint.engine.arguments import Arguments
from lightlint.engine.events.base import Event
from lightlint.values.core import Mapping, Site, Value
from lightlint.values.training import Encoding, Instance, Module


@dataclass(eq=False)
class SettingsParsed(Event):
    """A command line was parsed into TrainingArguments, of a class of the program that has defaults of its own."""

    settings: Instance


@dataclass(eq=False)
class TrainerMade(Event):
    """A Trainer of Transformers or TRL was made; `settings`: its TrainingArguments, None where they are out of sight."""

    trainer: Instance
    settings: Instance | None


@dataclass(eq=False)
class TrainerRan(Event):
    """A Trainer trained, evaluated or predicted; `row`: of what it trains on, as its data or its collator give it."""

    trainer: Instance
    settings: Instance | None
    model: Value | None
    method: str
    row: Mapping | None = None


@dataclass(eq=False)
class Rewarded(Event):
    """A reward function of a Trainer of TRL, the one at a `place` among them, gave something back, in code at a site.

    `inside`: what happened in it.
    """

    trainer: Instance
    settings: Instance | None
    place: int
    result: Value
    returned_at: Site | None
    inside: list[Event] = field(default_factory=list)


@dataclass(eq=False)
class TalkAsked(Event):
    """The messages of a talk were asked for something that only a text has; `raises`: a list raises then."""

    asked: str
    raises: bool


@dataclass(eq=False)
class MetricsComputed(Event):
    """`compute_metrics` of a Trainer gave something back."""

    trainer: Instance
    settings: Instance | None
    result: Value
    returned_at: Site | None


@dataclass(eq=False)
class TokensAdded(Event):
    """Tokens were added to a tokenizer."""

    tokenizer: Instance
    given: Arguments
    method: str


@dataclass(eq=False)
class EmbeddingsResized(Event):
    """The embeddings of a model were given other sizes, or may have been."""

    model: Module


@dataclass(eq=False)
class AdapterAdded(Event):
    """An adapter was put into a model, made by a `config` or loaded; `trainable`: as it was asked for, None by default."""

    model: Module
    base: Module
    config: Value | None
    loaded: bool
    trainable: Value | None = None


@dataclass(eq=False)
class TextsScored(Event):
    """A metric of texts was given predictions and references."""

    metric: Instance
    given: Arguments
    values: list[Value]


@dataclass(eq=False)
class Trimmed(Event):
    """What all processes gathered was cut to a length, or put where its numbers say, which are gathered, too."""

    value: Value


@dataclass(eq=False)
class Generated(Event):
    """A model generated text from what it was given."""

    model: Module
    given: Arguments


@dataclass(eq=False)
class ColumnAsked(Event):
    """A batch of a Trainer was asked for a column by name, which is not among those that every model takes.

    `in_rows`: one of its rows, before a batch was made of them.
    """

    trainer: Value
    name: str
    in_rows: bool = False


@dataclass(eq=False)
class Encoded(Event):
    """A tokenizer made ids of texts."""

    encoding: Encoding


@dataclass(eq=False)
class RowsMapped(Event):
    """A function of the program made columns of the rows of a table: `result`, with what else `given` says."""

    given: Arguments
    result: Mapping


@dataclass(eq=False)
class Decoded(Event):
    """A tokenizer made texts of ids."""

    tokenizer: Instance
    ids: Value | None


@dataclass(eq=False)
class Merged(Event):
    """`merge_and_unload` gave back a model that has what an adapter has learnt; `model`: with the adapter."""

    model: Module


@dataclass(eq=False)
class Labelled(Event):
    """A model whose layers are out of sight was given labels, of which it computes the loss itself."""

    model: Module
    given: Arguments


@dataclass(eq=False)
class TokensRead(Event):
    """A model of Transformers was given token ids, by itself or in the pass of another."""

    model: Module
    ids: Value


@dataclass(eq=False)
class PlacesAveraged(Event):
    """A mean was taken over all places of what a model gave for texts that were filled up, the filling with them."""

    encoding: Encoding


@dataclass(eq=False)
class ManagedBackward(Event):
    """An Accelerator, or an engine of DeepSpeed, was told to run the backward pass of a loss."""

    manager: Instance
    loss: Value


@dataclass(eq=False)
class TokenCompared(Event):
    """A tensor was compared with the id of a token that a tokenizer has a `name` for."""

    tokenizer: Instance
    name: str
    other: Value
