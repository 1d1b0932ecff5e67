"""`Facts`: all that is known of a case, with what was looked at and what was refused."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from trainprobe.model.facts import Fact
from trainprobe.model.subjects import JOB, Subject

F = TypeVar("F", bound=Fact)


class AnyRank(enum.Enum):
    """Stands for "whichever rank", since None already means the host or the job."""

    ANY = "any"

    __hash__ = object.__hash__  # the one of Enum takes longer than the look-up


ANY: Final = AnyRank.ANY
_Place = tuple["str | None", "int | AnyRank | None"]


@dataclass(frozen=True)
class Look:
    """A look of kind `kind` that told something."""

    kind: str
    cell: str = ""
    rank: int | None = None
    evidence: str = ""


@dataclass(frozen=True)
class Refusal:
    """A look that told nothing: its outcome (denied, unavailable, timed_out, crashed) and why."""

    kind: str
    outcome: str
    reason: str
    subject: Subject = JOB
    cell: str = ""
    evidence: str = ""


class Facts:
    """The facts of one case. Built by `read()`, or directly from facts in tests and fixtures. It
    is never changed.
    """

    def __init__(
        self,
        facts: Iterable[Fact] = (),
        *,
        looked: Iterable[Look] = (),
        refused: Iterable[Refusal] = (),
        unreadable: Iterable[str] = (),
    ) -> None:
        self.all: tuple[Fact, ...] = tuple(facts)
        self._looked = tuple(looked)
        self._refused = tuple(refused)
        self.unreadable: tuple[str, ...] = tuple(unreadable)
        self._by_kind: dict[type[Fact], list[Fact]] = {}
        for fact in self.all:
            self._by_kind.setdefault(type(fact), []).append(fact)
        # By cell and rank, None included: of thousands of ranks each is asked for many times.
        self._of_ranks: dict[type[Fact], dict[_Place, tuple[Fact, ...]]] = {}
        self._of_cells: dict[type[Fact], dict[_Place, tuple[Fact, ...]]] = {}
        self.derived: dict[object, Any] = {}
        """What functions over all facts have found in them, by function and arguments."""
        self._told = {
            (look.kind, cell, rank)
            for look in self._looked
            for cell in (None, look.cell)
            for rank in (ANY, look.rank)
        }

    def of(
        self, kind: type[F], *, cell: str | None = None, rank: int | AnyRank | None = ANY
    ) -> tuple[F, ...]:
        """All facts of a kind, in the order of their evidence; `cell` None and `rank` ANY do not
        restrict.
        """
        index = self._of_ranks if rank is not ANY else self._of_cells
        if kind not in index:
            index[kind] = self._indexed(kind, by_rank=rank is not ANY)
        found: Any = index[kind].get((cell, rank), ())
        return found  # type: ignore[no-any-return] # facts of the kind asked for, by the key

    def _indexed(self, kind: type[Fact], *, by_rank: bool) -> dict[_Place, tuple[Fact, ...]]:
        places: dict[_Place, list[Fact]] = {}
        for fact in self._by_kind.get(kind, ()):
            rank = fact.rank if by_rank else ANY
            for place in ((None, rank), (fact.cell, rank)):
                places.setdefault(place, []).append(fact)
        return {place: tuple(facts) for place, facts in places.items()}

    def one(
        self, kind: type[F], *, cell: str | None = None, rank: int | AnyRank | None = ANY
    ) -> F | None:
        """The first of `of`, or None."""
        found = self.of(kind, cell=cell, rank=rank)
        return found[0] if found else None

    def cells(self) -> tuple[str, ...]:
        """The cells that anything is known of, in the order in which they first appear."""
        names = (
            [fact.cell for fact in self.all]
            + [look.cell for look in self._looked]
            + [refusal.cell for refusal in self._refused]
        )
        return tuple(dict.fromkeys(name for name in names if name))

    def looked(
        self, evidence_kind: str, *, cell: str | None = None, rank: int | AnyRank | None = ANY
    ) -> bool:
        """Was such a look made, and did it tell something? "Absent" can only be said where this
        is true.
        """
        return (evidence_kind, cell, rank) in self._told

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks that told something."""
        return self._looked

    def refused(
        self, evidence_kind: str | None = None, *, cell: str | None = None
    ) -> tuple[Refusal, ...]:
        """The looks that told nothing, with the reason for each."""
        return tuple(
            refusal
            for refusal in self._refused
            if (evidence_kind is None or refusal.kind == evidence_kind)
            and (cell is None or refusal.cell == cell)
        )
