from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import LossComputed, Masked
from lightlint.engine.events.huggingface import Labelled, TrainerRan
from lightlint.explore.samples import part_of_batch, parts_of
from lightlint.frameworks.huggingface.trainer import TOKENS
from lightlint.frameworks.huggingface.values import name_of_collator, replaces
from lightlint.models.data.workers import SAMPLE
from lightlint.models.sequences import masks
from lightlint.models.sequences.masks import LEFT_OUT
from lightlint.values.core import Constant, Sequence, Unknown, is_constant, number_of, text_of
from lightlint.values.training import Instance, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site, Value
    from lightlint.values.training import Encoding, Loader

_PADDING = (
    "DataCollatorForLanguageModeling",
    "DataCollatorForSeq2Seq",
    "DataCollatorWithPadding",
    "DataCollatorForTokenClassification",
)
_KEEPING = ("DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DefaultDataCollator", "default_data_collator")
_LOSSES = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss")


_TOLD = re.compile(r"\bpadding_idx\b")


class PaddingInLoss(Check):
    users_with = ("TrainingArguments",)

    def wants_users(self) -> tuple[str, ...]:
        return (*self.users_with, "torch.optim", "optim.") if _TOLD.search(self.facts.source.text) else self.users_with

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Losses over all token ids of a batch that is padded, the padding with them."""
        for path in entry.paths:
            for event in path.of(LossComputed):
                if _is_over_ids(event) and (_pads(path, event) or _is_padded(event.target)):
                    yield _at_targets(
                        event,
                        event.target,
                        None,
                        "the loss counts the padding of the batch: its targets are the input ids",
                    )
                elif _is_over_looked_up(event):
                    message = "the loss counts the padding of the batch: its targets are the ids of which the embedding is told that one is padding"
                    yield Fault.at(event, message)
                elif _is_over_filled(event):
                    message = "the loss counts the padding of the batch: its targets are filled up by `pad_sequence`, and it is told of no class to leave out"
                    yield Fault.at(event, message)
            for used in path.of(Masked):
                if used.kept and used.mask.kind == LEFT_OUT and used.where.grad:
                    yield Fault.at(
                        used,
                        "the mask is true where the labels are -100: it keeps what is to be left out, and drops the rest",
                    )
            for given in path.of(Labelled):
                labels = given.given.keywords.get("labels")
                padded = _is_padded(labels) or (_are_ids(labels) and _pads(path, given))
                if padded and given.where.grad and given.where.phase != "val":
                    yield _at_targets(
                        given,
                        labels,
                        given.given.get(0, "input_ids"),
                        "the loss counts the padding of the batch: its labels are the input ids",
                    )
            yield from _in_rows(path)


def _at_targets(event: LossComputed | Labelled, targets: Value | None, ids: Value | None, message: str) -> Fault:
    """A fault where targets are first made of the ids, if that is a statement before the one that takes them."""
    shared = {id(each) for each in _sources(ids)}
    own = [each for each in [*_sources(targets)][: -1 if ids is None else None] if id(each) not in shared]
    made_anew = [each for each in own if each.moved_from is None] or own
    sites = [each.site for each in made_anew if each.site is not None and not _is_within(each.site, event.site)]
    made = sites[-1] if sites else event.site
    return Fault(made, message, None, (event.site,), event.where.places[1:])


def _sources(value: Value | None) -> Iterator[Tensor]:
    """Ids, and what they are a move, a view or a copy of, the last one first, back to the batch that a loader gave."""
    given = False
    while isinstance(value, Tensor) and value.role == TOKENS and not (given and value.batch_of is None):
        yield value
        given = value.batch_of is not None
        value = value.made_of


def _is_within(site: Site, other: Site) -> bool:
    return site[0] == other[0] and other[1] <= site[1] <= other[3]


def _is_over_ids(event: LossComputed) -> bool:
    target = event.target
    reduced = event.reduction in ("mean", "sum") or bool(event.reduced)
    if event.function not in _LOSSES or event.ignores or not reduced:
        return False
    return isinstance(target, Tensor) and target.role == TOKENS


def _is_over_looked_up(event: LossComputed) -> bool:
    """Whether targets are ids that an embedding was given, too, which is told which of them is padding, in a program that has
    asked where that stands."""
    reduced = event.reduction in ("mean", "sum") or bool(event.reduced)
    if event.function not in _LOSSES or event.ignores or not reduced or not event.where.grad:
        return False
    sources = [*masks.origins(event.target)]
    known = any(each.looked_up is not None for each in sources) and any(each.compared for each in sources)
    return known and not any(each.filled or each.escaped for each in sources)


def _is_over_filled(event: LossComputed) -> bool:
    """Whether targets are sequences that a collate function has filled up to one length, with what is a class like others."""
    if event.function not in _LOSSES or event.ignores or event.reduction not in ("mean", "sum") or not event.where.grad:
        return False
    sources = [*masks.origins(event.target)]
    if any(each.filled or each.edited or each.escaped or each.compared or each.packed for each in sources):
        return False
    return any(_is_filled_up(loader, made) for each in sources for loader, made in _made_of(each))


def _made_of(tensor: Tensor) -> Iterator[tuple[Loader, list[Tensor]]]:
    """What the collate function of a loader gave that a tensor of its batch is, and what that was made of."""
    found = part_of_batch(tensor)
    if found is not None:
        yield found[0], [*masks.origins(parts_of(found[0]).get(found[1]))]
    elif tensor.batch_of is not None and tensor.part is None:
        yield tensor.batch_of, [*masks.origins(tensor.batch_of.attributes.get(SAMPLE))]


def _is_filled_up(loader: Loader, made: list[Tensor]) -> bool:
    """Whether a tensor holds several sequences that are filled up with the number of a class, and was not looked at since."""
    filler = next((each.filler for each in made if each.filler is not None), None)
    number = number_of(filler) if filler is not None else None
    changed = any(each.filled or each.edited or each.compared for each in made)
    several = not is_constant(loader.arguments.get("batch_size", Constant(1)), 1, None)
    return several and not changed and number is not None and number >= 0


def _are_ids(value: Value | None) -> bool:
    return isinstance(value, Tensor) and value.role == TOKENS and not value.filled


def _pads(path: Path, event: LossComputed | Labelled) -> bool:
    """Whether a step of a Trainer asks, whose collator pads its batches."""
    if event.where.phase not in ("train", "val"):  # the program itself, beside a Trainer's run
        return False
    before = [each for each in path.of(TrainerRan) if each.time < event.time]
    collator = before[-1].trainer.argument("data_collator", 2) if before else None
    return isinstance(collator, Instance) and collator.name in _PADDING and not collator.open_arguments


def _in_rows(path: Path) -> Iterator[Fault]:
    """Labels in the rows that a Trainer trains on, which are ids with their padding."""
    for event in path.of(TrainerRan):
        labels = event.row.items.get("labels") if event.row is not None else None
        if event.row is not None and labels is not None and _is_padded(labels) and _takes_labels(event.trainer):
            site = event.row.places().get("labels")
            if site is not None:
                message = "the labels keep the padding, which the loss counts: it leaves out -100 only"
                yield Fault(site, message, argument="labels")


def _takes_labels(trainer: Instance) -> bool:
    """Whether the loss is the model's own, of the labels as the rows have them."""
    collator = trainer.argument("data_collator", 2)
    named = name_of_collator(collator)
    kept = collator is None or named in _KEEPING or is_constant(collator, None)
    kept |= not isinstance(collator, Unknown) and trainer.name == "Trainer" and not named.startswith("DataCollator")
    own = replaces(trainer, "compute_loss", "training_step")
    return kept and not own and "compute_loss_func" not in trainer.arguments


def _is_padded(value: Value | None, depth: int = 0) -> bool:
    """Whether ids are those of several padded texts, none of which was looked at."""
    if isinstance(value, Sequence) and depth < 3:
        return bool(value.items) and all(_is_padded(each, depth + 1) for each in value.items)
    if isinstance(value, Tensor):
        encoding = value.encoding if value.role == TOKENS and not value.filled else None
    else:
        key = value.key if isinstance(value, Unknown) else None
        encoding = value.encoding if value is not None and isinstance(key, tuple) and key[0] == "token" else None
    return encoding is not None and _fills_up(encoding)


def _fills_up(encoding: Encoding) -> bool:
    whole = text_of(encoding.given.get("padding")) == "max_length"
    return encoding.pads is True and not encoding.asked and (whole or encoding.several is not False)
