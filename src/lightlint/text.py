"""A text as `needs` ask it: its words, its functions, classes and loops, and what Python's parser makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from lightlint.syntax import rows_of, statements_in, tree_of

if TYPE_CHECKING:
    import ast

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BLOCKS = {
    "def": {"FunctionDef", "AsyncFunctionDef"},
    "class": {"ClassDef"},
    "subclass": {"ClassDef"},
    "loop": {"For", "AsyncFor", "While"},
}  # the types of statements in `ast`, which is imported when a block is asked for
_KINDS = {name: [kind for kind, types in BLOCKS.items() if name in types] for name in set().union(*BLOCKS.values())}
NOTEBOOK = ("get_ipython",)  # what every notebook can call: the word by which `needs` ask for one
_PLAIN_BASE = re.compile(
    r"object|(?:torch\.)?nn\.\w+|(?:(?:torch\.)?(?:utils\.)?data\.)?(?:(?:Iterable)?Dataset|(?:Batch)?Sampler)"
    r"|(?:torch\.)?(?:optim\.)?Optimizer|(?:torch\.)?(?:autograd\.)?Function|(?:unittest\.)?TestCase|(?:abc\.)?ABC"
    r"|(?:enum\.)?(?:Int|Str)?Enum|(?:typing\.)?(?:NamedTuple|TypedDict|Protocol)|str|int|dict|list|Exception|\w+Error"
)  # a base that is none of Lightning's

TRAINS = re.compile(
    r"backward\b|def training_step|\.fit\b|DataLoader\b|cross_entropy|CrossEntropyLoss|nll_loss|NLLLoss|BCE\w*Loss"
    r"|binary_cross_entropy|kl_div|KLDivLoss|mse_loss|MSELoss|l1_loss|L1Loss|lr_scheduler|param_groups|barrier\b|all_reduce\b"
    r"|\.compute\b|distributed|Distributed|def on_|random_split|train_test_split|load_state_dict\b|torch\.load\b|load_from_checkpoint\b"
    r"|def (?:validation|test)_step|Trainer\b|TrainingArguments|Fabric\b(?<!\wFabric)|Accelerator\b(?<!\wAccelerator)|PeftModel|SFTConfig\b|DPOConfig\b|GRPOConfig\b|KTOConfig\b|ORPOConfig\b|PPOConfig\b|RLOOConfig\b|\.generate\b|LightningCLI|def configure_optimizers|ModelCheckpoint|EarlyStopping"
    r"|torchmetrics|autocast\b|GradScaler|\.(?:in|out)_(?:features|channels)\s*=(?!=)|\.(?:num_embeddings|embedding_dim)\s*=(?!=)"
    r"|LightningModule|LightningDataModule|stable_baselines3\b(?<!\wstable_baselines3)|sb3_contrib\b(?<!\wsb3_contrib)"
)  # what a file must hold for a rehearsal to show anything; `re` takes four times as long where a part begins with no plain letter

_REGISTERS = re.compile(
    r"^@(?!(?:dataclass|torch|functools|lru_cache|cache|contextlib|contextmanager|no_grad|inference_mode|total_ordering)\b)"
    r"|^[A-Za-z_][\w.]*(?:\(|\[[^\]\n]*\]\s*=(?!=)|(?<=\w)\.\w+\s*=(?!=))",
    re.MULTILINE,
)  # a decorator, call or assignment to a part of something, in the first column

_Ranges = dict[str, list[tuple[int, int]]]


class Wanted(Protocol):
    """What a block may be asked for."""

    def met(self, text: Text) -> bool:
        """Whether a text has it."""


class Text:
    """A text that `needs` are asked of; `also` are other forms of it, such as a notebook's cells with their magics."""

    def __init__(self, text: str, *also: str, within: tuple[_Ranges, int, int] | None = None) -> None:
        self._texts = tuple(dict.fromkeys((text, *also)))
        self._all = "\n".join(self._texts)
        self._within = within
        self._blocks: dict[str, list[Text]] = {}
        self._matched: dict[re.Pattern[str], bool] = {}
        self._held: dict[tuple[str, int], bool] = {}

    def holds_all(self, words: frozenset[str]) -> bool:
        """Whether each of some identifiers occurs; most blocks do not have one of them even as a part of another one."""
        if "words" not in self.__dict__ and not all(word in self._all for word in words):
            return False
        return not words or words <= self.words

    def holds_one(self, words: frozenset[str]) -> bool:
        """Whether one of some identifiers occurs."""
        if "words" not in self.__dict__ and not any(word in self._all for word in words):
            return False
        return not words.isdisjoint(self.words)

    @property
    def plain(self) -> str:
        """The text alone, without its other forms."""
        return self._texts[0]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier."""
        return words_of(self._all) if self._within is None else frozenset(WORD.findall(self._all))

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Whether a regular expression matches somewhere."""
        found = self._matched.get(pattern)
        if found is None:
            found = self._matched[pattern] = any(pattern.search(text) for text in self._texts)
        return found

    def holds_block(self, kind: str, inside: Wanted) -> bool:
        """Whether one of its functions, classes or loops meets something."""
        key = kind, id(inside)  # what is asked for lives as long as the rule book
        if key not in self._held:
            self._held[key] = any(map(inside.met, self.blocks(kind)))
        return self._held[key]

    def blocks(self, kind: str) -> Sequence[Text]:
        """The functions, classes or loops of the text; none where Python cannot parse it."""
        if kind not in self._blocks:
            self._blocks[kind] = [self._block(first, last) for first, last in self._ranges(kind)]
        return self._blocks[kind]

    @property
    def is_parsed(self) -> bool:
        """Whether its blocks are known."""
        return self._within is not None or self._by_kind is not None

    def _ranges(self, kind: str) -> list[tuple[int, int]]:
        """The first row of each block of a kind and the one behind its last, counted from 0 over the whole text."""
        ranges, first, last = self._place
        return [(start, end) for start, end in ranges.get(kind, ()) if first <= start and end <= last]

    @property
    def _place(self) -> tuple[_Ranges, int, int]:
        return self._within or (self._by_kind or {}, 0, len(self._rows))

    def _block(self, start: int, end: int) -> Text:
        """The text of some rows; it does not know this one, or both would have to wait for the collector."""
        ranges, first, _ = self._place
        return Text("".join(self._rows[start - first : end - first]), within=(ranges, start, end))

    @cached_property
    def tree(self) -> ast.Module | None:
        """What Python's parser makes of the text, None where it refuses it."""
        return tree_of(self._texts[0])

    @cached_property
    def _rows(self) -> list[str]:
        return rows_of(self._texts[0])

    @cached_property
    def _by_kind(self) -> _Ranges | None:
        """The rows of its blocks, None where Python refuses the text."""
        tree = self.tree
        if tree is None:
            return None
        found: _Ranges = {kind: [] for kind in BLOCKS}
        for statement in statements_in(tree.body):
            kinds = _KINDS.get(type(statement).__name__)
            if kinds is None:
                continue
            first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
            block = (first - 1, statement.end_lineno or first)
            for kind in kinds:
                if kind != "subclass" or not all(_PLAIN_BASE.fullmatch(_dotted(base)) for base in statement.bases):  # type: ignore[attr-defined]
                    found[kind].append(block)
        return found


class Together(Text):
    """A text and those of other files as one, whose blocks are those of each."""

    def __init__(self, own: Text, others: Iterable[str]) -> None:
        self._parts = [own, *map(_known, others)]
        super().__init__("\n".join(part._all for part in self._parts))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.words for part in self._parts))

    def matches(self, pattern: re.Pattern[str]) -> bool:
        return any(part.matches(pattern) for part in self._parts)

    def holds_block(self, kind: str, inside: Wanted) -> bool:
        return any(part.holds_block(kind, inside) for part in self._parts)

    @property
    def is_parsed(self) -> bool:
        return all(part.is_parsed for part in self._parts)


_known = lru_cache(maxsize=64)(Text)  # files that many others use: what was asked of them is kept


@lru_cache(maxsize=2)  # a file's are asked for by its needs and by its rehearsal
def words_of(text: str) -> frozenset[str]:
    """Every identifier of a text."""
    return frozenset(WORD.findall(text))


def registers(text: str) -> bool:
    """Whether running a module may do more than to give its names their values, as far as a look at its text tells."""
    return _REGISTERS.search(text) is not None


def _dotted(base: ast.expr) -> str:
    """A name with its dots, empty for any other expression."""
    if type(base).__name__ == "Attribute":
        return f"{_dotted(base.value)}.{base.attr}"  # type: ignore[attr-defined]
    return base.id if type(base).__name__ == "Name" else ""  # type: ignore[attr-defined]
