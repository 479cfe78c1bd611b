"""What every check is: a visitor over one file's tree that asks facts and reports findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.data.settled import Settled
from lightlint.facts.file import FileFacts
from lightlint.finding import Applicability, Finding, Fix, Tier
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, as_fix
from lightlint.pages import Page
from lightlint.trees.sketch.places import UnplacedError

_PLACES = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement)

if TYPE_CHECKING:
    from lightlint.engine.events import E, Event
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site


@dataclass(frozen=True, slots=True)
class Repair:
    """A fix as a check states it: what it does, the edits, and whether they keep what the program means.

    `writes` says which release brought what the edits write, as in "torch>=1.13" or "lightning>=2.0": the fix is offered
    only where every version that the project allows has it.
    """

    message: str
    draft: Draft | None
    applicability: Applicability = Applicability.SAFE
    writes: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule finds in a rehearsal: a place in the program, and what is wrong there."""

    site: Site
    message: str
    tier: Tier | None = None
    also: tuple[Site, ...] = ()  # where else the rule may have told the same fault
    calls: tuple[Site, ...] = ()  # that led here, in whose rows it may have been told
    fixed_at: Site | None = None  # the statement that its fix changes, where that is another one
    of_call: bool = False  # it lies in the arguments of a call: told there or nowhere by who reads the text
    argument: str = ""  # the one, by its keyword or key

    @property
    def led_from(self) -> tuple[Site, ...]:
        """The calls that led here, the innermost first, and the other places that it hangs on."""
        return (*reversed(self.calls), *self.also[:1], *reversed(self.also[1:]))

    @classmethod
    def at(cls, event: Event, message: str, *also: Site, tier: Tier | None = None) -> Fault:
        """A fault where an event happened."""
        return cls(event.site, message, tier, also, event.where.places[1:])

    @classmethod
    def of(cls, event: Event, message: str, *, tier: Tier | None = None, argument: str = "") -> Fault:
        """A fault in what one call, or assignment, says, or in one `argument` of a call, wherever that is written."""
        calls = event.where.places[1:]
        return cls(event.said_at(argument), message, tier, calls=calls, of_call=True, argument=argument)


class Check:
    """Base of every check. Subclasses define `visit_<NodeType>` methods and keep no state of their own.

    `asks_passes`: its `rehearse` asks the forward passes of the file's modules, too, of whatever file (else `wants_passes`).
    `asks_rest`: it asks functions with one of these words besides those that train, too: for faults that lie in one call
    (else `wants_rest`).
    `users_with`: it asks the files, too, that import from the file and have one of these words: what they do with its classes
    (else `wants_users`). `tells_of_old_code`: its fault is what makes code old, so that this is no reason to be silent.
    `of_several_processes`: its fault costs nothing in a run of one process: a note, where the project starts no other.

    The facts are attributes: `tree`, `names`, `classes`, `hooks`, `values`, `loops`, `guards`, and `facts` for the rest,
    and `code` is what the edit helpers take.
    """

    asks_passes = False
    asks_rest: frozenset[str] = frozenset()
    users_with: tuple[str, ...] = ()
    tells_of_old_code = False
    of_several_processes = False

    def __init__(self, page: Page, facts: FileFacts, add: Callable[[Finding], None]) -> None:
        self.page = page
        self.facts = facts
        self.tree = facts.tree
        self.names = facts.names
        self.classes = facts.classes
        self.hooks = facts.hooks
        self.values = facts.values
        self.loops = facts.loops
        self.guards = facts.guards
        self._add = add

    @property
    def code(self) -> Code:
        """What the helpers in `lightlint.fixes.edits` work on."""
        return Code(self.facts.source, self.facts)

    def rehearse(self, _entry: Entry) -> Iterator[Fault]:
        """What is wrong in the rehearsals of one entry of the file; a rule about what happens defines this."""
        return iter(())

    def runs_right(self, node: cst.CSTNode, kind: type[E], is_fault: Callable[[E], bool | None]) -> bool:
        """Whether something happened at a node in the rehearsals that the rule asks, and never with the rule's fault.

        Args:
            node: the place.
            kind: what happened.
            is_fault: whether an event has the fault, None where it tells nothing.
        """
        span = self.facts.positions.span(node)
        events = [event for _, _, event in self.happened(node, kind) if self.facts.rehearsed.span(event.site) == span]
        return bool(events) and not any(is_fault(event) is not False for event in events)

    def wants_passes(self) -> bool:
        """Whether a module of the file may have the fault in a forward pass, as far as a look at the text tells: passes
        cost more than all that a file else does."""
        return self.asks_passes

    def wants_rest(self) -> frozenset[str]:
        """The words whose functions are to be rehearsed besides those that train, as far as the text may have the fault."""
        return self.asks_rest

    def wants_users(self) -> tuple[str, ...]:
        """The words whose files are to be rehearsed, too, as far as what they do with this one decides: each costs as much
        as this file."""
        return self.users_with

    def clears(self, _entry: Entry) -> Iterator[Site]:
        """Places where a rehearsal shows that all is well, whatever the text looks like: nothing is reported in them."""
        return iter(())

    def is_versioned(self, event: Event, raises: str = "") -> bool:
        """Whether an event happens for some versions of the libraries only, as far as this file tells; `raises`: what it
        raises for the others."""
        from lightlint.facts.releases.compat import is_versioned

        if event.where.depends_on("version"):
            return True
        spans = {span for site in event.where.places if (span := self.facts.rehearsed.span(site)) is not None}
        own = self.node_of(event.site)
        nodes: list[cst.CSTNode] = [] if own is None else [own]
        nodes += (each for each in self.tree.all(cst.Call) if self.facts.positions.span(each) in spans)
        return any(is_versioned(self.facts, node, raises=raises) for node in nodes)

    def report_fault(self, fault: Fault, start: int, end: int) -> None:
        """Report what a rehearsal shows, at characters `start` to `end`."""
        if self._is_due():
            repairs = type(self).repair is not Check.repair
            node = self._node_at(start, end) if repairs or fault.argument else None
            repair = self.repair(node, fault) if node is not None and repairs else None
            argument = self.entry_of(node, fault.argument) if node is not None and fault.argument else None
            if argument is not None:
                start, end = self.facts.positions.span(argument)
            self._report_span(start, end, fault.message, repair, fault.tier)

    def report_away(self, fault: Fault, place: str, start: int, end: int, cause: Finding | None) -> None:
        """Report at a call, at characters `start` to `end`, what it comes to at a place in another file: `cause` there."""
        if self._is_due():
            self._report_span(start, end, f"{fault.message} ({place})", None, fault.tier, cause)

    def entry_of(self, node: cst.CSTNode, name: str) -> cst.Arg | cst.DictElement | None:
        """What gives a name its value in a call or in a dict, None where neither says it."""
        if isinstance(node, cst.Call):
            return self.names.argument(node, name)
        elements = node.elements if isinstance(node, cst.Dict) else ()
        named = (each for each in elements if isinstance(each, cst.DictElement))
        return next((each for each in named if self.names.constant(each.key) == name), None)

    def repair(self, _node: cst.CSTNode, _fault: Fault) -> Repair | None:
        """The fix of what a rehearsal shows, by the node where it lies; a rule with a fix defines this."""
        return None

    def happened(self, node: cst.CSTNode, kind: type[E]) -> list[tuple[Entry, Path, E]]:
        """The events of a kind at a node in all rehearsals of the file: none, too, where no rehearsal comes there."""
        return self.facts.rehearsed.at(*self.facts.positions.span(node), kind, passes=self.wants_passes())

    def stands(self) -> bool:
        """Whether findings of this file stand, asked before one is reported: for questions that take long to answer."""
        return True

    def report(
        self, node: cst.CSTNode, message: str, *, repair: Repair | None = None, tier: Tier | None = None
    ) -> None:
        """Report a finding at a node; `tier` replaces the page's where this case is better or worse than the rule's.

        Nothing is said of code that never runs, as under `if False:`, behind `return`, or for a setting that the file itself
        makes another.
        """
        if self._is_due() and not self.facts.is_dead(node) and not Settled(self.facts).is_against(node):
            start, end = self.facts.positions.span(node)
            self._report_span(start, end, message, repair, tier)

    def report_span(
        self, start: int, end: int, message: str, *, repair: Repair | None = None, tier: Tier | None = None
    ) -> None:
        """Report a finding at characters `start` to `end` of the source's text."""
        if self._is_due():
            self._report_span(start, end, message, repair, tier)

    def node_of(self, site: Site) -> cst.CSTNode | None:
        """The node at a place in a rehearsal, None where it lies in another file."""
        span = self.facts.rehearsed.span(site)
        return self._node_at(*span) if span is not None else None

    def _is_due(self) -> bool:
        """Whether findings stand, and the project may run with a version that the page speaks of."""
        return all(self._holds(each.strip()) for each in self.page.applies.split(",") if each) and self.stands()

    def _holds(self, clause: str) -> bool:
        package, _, since = clause.partition(">=")
        target = self.facts.target(package)
        if target.of_code and self.tells_of_old_code:
            return True
        return target.may_be_at_least(since) and not (target.hearsay and target.may_be_below(since))

    def _node_at(self, start: int, end: int) -> cst.CSTNode:
        """The smallest expression or statement that holds characters `start` to `end`: of equal ones the outermost, an
        expression before the statement that it is alone in."""
        found: cst.CSTNode = self.tree.module
        smallest = (len(self.facts.source.text) + 1, True)
        unplaced: UnplacedError | None = None

        def is_around(node: cst.CSTNode) -> bool:
            nonlocal found, smallest, unplaced
            if not isinstance(node, _PLACES):
                return True
            try:
                first, last = self.facts.positions.span(node)
            except UnplacedError as error:
                unplaced = error
                return True
            if not (first <= start and end <= last):
                return bool(getattr(node, "decorators", ()))  # which stand before it
            size = (last - first, not isinstance(node, cst.BaseExpression))
            if size < smallest:
                found, smallest = node, size
            return True

        self.tree.descend(is_around)
        if unplaced is not None and smallest[0] > end - start:  # a smaller one may be among those
            raise unplaced
        return found

    def _tier_here(self, tier: Tier) -> Tier:
        """What a finding means, by how the project starts the program."""
        hangs = self.of_several_processes and tier is not Tier.NOTE
        return Tier.NOTE if hangs and self.facts.world.is_run_alone else tier

    def _runs_everywhere(self, repair: Repair) -> bool:
        """Whether all versions that the project allows have what a fix writes."""
        if not repair.writes:
            return True
        package, _, since = repair.writes.partition(">=")
        return self.facts.target(package).always_has(since)

    def _report_span(
        self,
        start: int,
        end: int,
        message: str,
        repair: Repair | None,
        tier: Tier | None,
        cause: Finding | None = None,
    ) -> None:
        source, page = self.facts.source, self.page
        cell = source.cell_at(start)
        if "\n" in message:  # it names code that is written over several lines
            message = " ".join(message.split())
        fix: Fix | None = None
        if repair is not None and self._runs_everywhere(repair):
            fix = as_fix(source, repair.message, repair.draft, repair.applicability)
        self._add(
            Finding(
                code=page.code,
                name=page.name,
                tier=self._tier_here(tier or page.tier),
                message=message,
                filename=source.filename,
                start=start,
                end=end,
                location=source.locate(start),
                end_location=source.locate(end),
                cell=cell.number if cell else None,
                fix=fix,
                cause=cause,
            )
        )
