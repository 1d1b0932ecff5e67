"""Which component of a job speaks in a line, and of what kind of event: also where no wording is
known, or the line was cut.

Known wordings (signatures/) tell first, then forms that only one component has (a source file in
the message, a speaker), then what is left of a wording that was cut, then frames, then words.
`components.yaml` holds the components.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from trainprobe.logtext.prefixes import read_prefixes
from trainprobe.shipped import shipped
from trainprobe.signatures import Signature, all_signatures, find

EventKind = Literal["waited", "died", "refused", "raised", "warned", "said"]
By = Literal["wording", "form", "cut", "frame", "word", "type"]
SEEN_CHARACTERS = 2000
SYSTEM = "network"
PATH_TYPES = frozenset({"FileNotFoundError", "IsADirectoryError", "NotADirectoryError"})
PIECE = 7  # characters of a wording by which it is known where it was cut
RUN = 5  # pieces in a row that tell something; EDGE: at the edge of the line
EDGE = 2
MOST_SHARED = 3  # components; a piece that more of them have tells nothing
# The likeliest kind first: who raises a timeout has waited. They are searched in the line in small
# letters, and begin with a letter, with what stands before it behind that: a pattern that ignores
# case or begins with \b takes ten times as long.
_KINDS: tuple[tuple[EventKind, re.Pattern[str]], ...] = (
    (
        "waited",
        re.compile(
            r"tim(?:ed?|ing)[ -]?out(?!(?:_\w{1,20})?['\"]?\s{0,3}[:=]\s{0,3}\d)"
            r"|(?<!done )(?<!finished )wait(?:ed|ing)? (?:for|in|timeout)|gave up|not acquired"
            r"|blocked for more"
        ),
    ),
    (
        "died",
        re.compile(
            r"k(?<!\wk)ill(?:ed|ing)\b|segfault|segmentation fault|core dumped"
            r"|a(?<!\wa)bort(?:ed)?\b|bus error|terminate called"
            r"|sig(?:segv|kill|abrt|term|bus)\b|exit(?:ed|code)?\b|d(?<!\wd)ied\b"
        ),
    ),
    (
        "refused",
        re.compile(
            r"refused|denied|not permitted|in use|invalid (?:argument|usage|device)"
            r"|unrecognized|unsupported|not supported"
        ),
    ),
    (
        "raised",
        re.compile(
            r"e(?<![_\d]e)rror\b|e(?<=[a-z]e)xception\b|i(?<=[a-z]i)nterrupt\b|\[e\d{0,4} "
            r"|nccl warn|went wrong|f(?<!\wf)ail(?:ed|ure)?\b|f(?<!\wf)atal\b|cannot|could not"
            r"|unable"
        ),
    ),
    ("warned", re.compile(r"warn(?:ing)?\b|deprecated|exceeded|mismatch")),
)
_TYPE = re.compile(
    r"\b(?:\w{1,40}\.){0,8}[A-Z]\w{0,40}(?:Error|Exception|Warning|Interrupt)\b:? ?"
    r"|(?i:error|warning|info): ?|no such file or directory|/[\w./-]{1,300}"
)
_RUN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[?*+]|\{[\d,]+\}\??)"
    r"|(?P<name>\(\?P<\w+>|\(\?[:=!<]{1,2})|(?P<other>[().^$|])|(?P<text>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Component:
    """One component. `named` is how a sentence names it, `causes` the causes to think of, with
    their reasons, and `separates` what tells these apart.
    """

    id: str
    named: str
    events: frozenset[str]
    lines: frozenset[str]
    forms: tuple[re.Pattern[str], ...]
    words: tuple[re.Pattern[str], ...]
    types: frozenset[str]
    frames: tuple[re.Pattern[str], ...]
    causes: Mapping[str, str]
    separates: str


@dataclass(frozen=True)
class Reading:
    """What a line is of. `by` says what told: wording, form, cut, frame, word or type."""

    component: Component
    kind: EventKind
    by: By

    @property
    def says(self) -> str:
        """A clause: `the TCP store of c10d gave up waiting`, `the trouble shows in NCCL`."""
        if self.kind == "waited":
            return f"{self.component.named} gave up waiting"
        return f"the trouble shows in {self.component.named}"


@functools.cache
def components() -> tuple[Component, ...]:
    """Every component, the telling ones first."""
    rows = shipped(__package__, "components.yaml")
    return tuple(
        Component(
            name,
            row["is"],
            frozenset(row["events"]),
            frozenset(row.get("lines", ())),
            tuple(map(re.compile, row["forms"])),
            tuple(map(re.compile, row["words"])),
            frozenset(row.get("types", ())),
            tuple(map(re.compile, row["frames"])),
            dict(row["causes"]),
            row["separates"],
        )
        for name, row in rows.items()
    )


def component_of_signature(signature: Signature) -> Component:
    """The component whose line it is. Raises KeyError for a signature of none."""
    return _of_signatures()[signature.id]


@functools.cache
def _of_signatures() -> Mapping[str, Component]:
    by_event = {event: one for one in components() for event in one.events}
    by_id = {id_: one for one in components() for id_ in one.lines}
    return {
        one.id: by_id.get(one.id) or by_event[one.shows]
        for one in all_signatures()
        if one.id in by_id or one.shows in by_event
    }


def read_component(
    text: str,
    frames: Iterable[str] = (),
    type_name: str = "",
    *,
    own: bool = False,
    raises: bool = False,
) -> Reading | None:
    """Which component a line or an exception's `Type: message` is of; None where nothing tells.

    `frames` are `file name` of its stack, the innermost first; `own` says that the innermost is
    the program's own line, `raises` that it is a `raise`.
    """
    text = read_prefixes(text[:SEEN_CHARACTERS]).rest
    kind = event_kind(text)
    known = {component_of_signature(hit.signature).id for hit in find(text, "any")}
    if raises and not known:
        return Reading(components()[-1], kind, "frame")
    found = _told(text, known, tuple(frames), type_name.rsplit(".", 1)[-1], own=own)
    return Reading(found[0], kind, found[1]) if found is not None else None


def event_kind(text: str) -> EventKind:
    """Of what kind of event a line speaks."""
    small = text.lower()
    return next((kind for kind, form in _KINDS if form.search(small)), "said")


def _told(
    text: str, known: AbstractSet[str], frames: Sequence[str], type_name: str, *, own: bool
) -> tuple[Component, By] | None:
    formed = [one for one in components() if any(form.search(text) for form in one.forms)]
    framed = _framed(frames)
    if known:
        first = next(one for some in (formed, components()) for one in some if one.id in known)
        if first.id != SYSTEM:
            return first, "wording"
        # what the system says of a connection is of whoever used it
        return (framed, "frame") if framed else ((formed or [first])[0], "wording")
    user = components()[-1]
    # whoever opens a file, the program named it
    named = type_name in PATH_TYPES and (framed is None or framed.id == "storage")
    if named or (own and type_name in user.types):
        return user, "type"
    cut = _cut(text) if framed is None else None  # who shows frames was not cut
    if cut is not None and (not formed or cut in formed):
        return cut, "cut"
    if formed:
        return (framed, "frame") if formed[0].id == SYSTEM and framed else (formed[0], "form")
    if own or framed is not None:
        return user if own or framed is None else framed, "frame"
    for one in components():
        if any(word.search(text) for word in one.words):
            return one, "word"
    for one in components():
        if type_name in one.types or any(f"{name}:" in text for name in one.types):
            return one, "type"
    return None


def _framed(frames: Sequence[str]) -> Component | None:
    """Of the innermost frame that tells."""
    found = (
        one
        for frame in frames
        for one in components()
        if any(form.search(frame) for form in one.frames)
    )
    return next(found, None)


# --- wordings that were cut


def literal_parts(pattern: str) -> list[str]:
    """The literal texts in a regular expression, of any branch, as long as they run."""
    parts = [""]
    for token in _RUN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if kind == "text" or (kind == "escape" and not text[1].isalnum()):
            parts[-1] += text[-1]
        else:
            if kind == "repeat" and text[0] in "?*{":
                parts[-1] = parts[-1][:-1]
            parts.append("")
    return parts


@functools.cache
def _pieces() -> Mapping[str, frozenset[str]]:
    """Every piece of PIECE characters of the literal texts of wordings, in small letters, with the
    components that have it.
    """
    found: dict[str, set[str]] = {}
    for signature in all_signatures():
        name = component_of_signature(signature).id
        for part in {*literal_parts(signature.pattern), *signature.has}:
            for text in _split(part):
                found.setdefault(text, set()).add(name)
    return {text: frozenset(of) for text, of in found.items() if len(of) <= MOST_SHARED}


def _split(text: str) -> Iterator[str]:
    text = _TYPE.sub("\n", text).lower()
    pieces = (text[at : at + PIECE] for at in range(len(text) - PIECE + 1))
    return (piece for piece in pieces if "\n" not in piece)


def _cut(text: str) -> Component | None:
    """Whose wordings the line has most of. A few characters tell nothing, unless the line ends or
    begins with them, as where it was cut.
    """
    told: Counter[str] = Counter()
    runs: dict[str, int] = {}
    pieces, line = _pieces(), list(_split(text.strip().rstrip(".\u2026 ")))
    for at, piece in enumerate((*line, "")):
        names = pieces.get(piece, frozenset())
        for name in set(runs) - names:
            long = runs.pop(name)
            if long >= (EDGE if at in (long, len(line)) else RUN):
                told[name] += long
        for name in names:
            runs[name] = runs.get(name, 0) + 1
    best, second = (*told.most_common(2), ("", 0), ("", 0))[:2]
    if best[1] <= second[1]:
        return None
    return next(one for one in components() if one.id == best[0])
