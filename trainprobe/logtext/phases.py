"""In which phase of a job a line was printed: its start, the rendezvous, NCCL's set-up, the loading
of model and data, the first step, an evaluation, a save.

`phases.yaml` holds the phases, with what usually stops a job in each of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainprobe.shipped import shipped
from trainprobe.signatures.required_literals import small_literals

READ = 400  # characters of a line
PIECE = 4  # characters
_SENTENCE = re.compile(r"(?<=\w[.!?;]) (?=[A-Z])")


@dataclass(frozen=True)
class Likely:
    """What may hold a job up in a phase: points, and the reason as a clause."""

    points: int
    reason: str


class _Form(NamedTuple):
    """A line that `form` matches has one of `texts` in small letters, and so, unless there are
    none, one of `pieces`: to look for these first costs a tenth.
    """

    name: str
    texts: tuple[str, ...]
    pieces: frozenset[str]
    form: re.Pattern[str]


@dataclass(frozen=True)
class Phase:
    """`when` ends the sentence `The log stops …`. `causes` are the usual ones by id, `given` those
    that another sign puts in their place; `separates` tells them apart. `everyone`: each rank
    prints lines of it. `warns`: they may be warnings, which tell no other phase. `ranks`: its
    causes are those of several ranks. `otherwise`: it counts where no other phase is told.
    """

    id: str
    when: str
    causes: Mapping[str, Likely]
    given: Mapping[str, Mapping[str, Likely]]
    separates: str
    everyone: bool
    warns: bool
    ranks: bool
    otherwise: bool

    def likely(self, signs: frozenset[str]) -> dict[str, Likely]:
        """The causes where these signs were seen, the likeliest first."""
        found = dict(self.causes)
        for sign, causes in self.given.items():
            if sign in signs:
                found.update(causes)
        kept = [(id_, one) for id_, one in found.items() if one.points > 0]
        return dict(sorted(kept, key=lambda item: -item[1].points))


@functools.cache
def phases() -> Mapping[str, Phase]:
    """All phases by id, in the order in which a job goes through them."""
    return {
        name: Phase(
            name,
            row["when"],
            _likely(row["causes"]),
            {sign: _likely(causes) for sign, causes in row.get("given", {}).items()},
            row["separates"],
            bool(row.get("everyone", False)),
            bool(row.get("warns", False)),
            bool(row.get("ranks", False)),
            bool(row.get("otherwise", False)),
        )
        for name, row in _data()["phases"].items()
    }


def read_phase(line: str) -> Phase | None:
    """The phase that a line tells; None where it tells none. The later phase counts."""
    text = line[:READ]
    small = text.lower()
    pieces = {small[at : at + PIECE] for at in range(len(small) - PIECE + 1)}
    found = next(
        (
            phases()[one.name]
            for one in _forms()
            if not (one.pieces and one.pieces.isdisjoint(pieces))
            and any(map(small.__contains__, one.texts))
            and one.form.search(text)
        ),
        None,
    )
    mild = found is not None and not found.warns and (is_warning(text) or is_beside(text))
    return None if mild else found


def is_warning(line: str) -> bool:
    """Whether a line only warns, which any phase does, or has no word."""
    return _pattern("neutral").search(line[:READ]) is not None


def is_beside(line: str) -> bool:
    """Whether it is the line of a program that runs beside the job, such as a tracker."""
    return _pattern("beside").search(line[:READ]) is not None


def is_of_others(line: str) -> bool:
    """Whether another program's output begins here, such as a prompt or a table of the queue."""
    return _pattern("others").search(line[:READ]) is not None


def says_it_waits(line: str) -> bool:
    """Whether a sentence of a line says in plain words that nothing more came, or the line shows a
    pressed Ctrl-C.
    """
    small = line.lower()
    if len(line) >= READ or not any(text in small for text in _data()["wait-texts"]):
        return False
    told = _pattern("waits")
    return any(told.search(one) for one in _SENTENCE.split(line))


def signs_in(text: str) -> set[str]:
    """Ids of the signs that a text shows."""
    return {name for name, pattern in _signs() if pattern.search(text)}


def _likely(rows: Mapping[str, Any]) -> dict[str, Likely]:
    return {name: Likely(points, reason) for name, (points, reason) in rows.items()}


@functools.cache
def _forms() -> tuple[_Form, ...]:
    """The forms of each phase in one, the later phases first."""
    rows = [(name, "|".join(_bare(row["forms"]))) for name, row in _data()["phases"].items()]
    return tuple(_form(name, pattern) for name, pattern in reversed(rows))


def _form(name: str, pattern: str) -> _Form:
    texts = small_literals(pattern) or ("",)
    short = min(map(len, texts)) < PIECE
    pieces = frozenset() if short else frozenset(text[-PIECE:] for text in texts)
    return _Form(name, texts, pieces, re.compile(pattern))


def _bare(forms: Iterable[str]) -> Iterator[str]:
    """Patterns that can stand side by side: a flag for the whole is one for its part."""
    for form in forms:
        yield f"(?i:{form[4:]})" if form.startswith("(?i)") else f"(?:{form})"


@functools.cache
def _pattern(name: str) -> re.Pattern[str]:
    told = _data()[name]
    return re.compile("|".join(_bare([told] if isinstance(told, str) else told)))


@functools.cache
def _signs() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(form)) for name, form in _data()["signs"].items())


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = shipped(__package__, "phases.yaml")
    return data
