"""The source around lines of stacks and tracebacks, read as text and never imported."""

from __future__ import annotations

import hashlib
import os
import re
import tokenize
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
)

from trainprobe.collect.collector import Collector, record_look
from trainprobe.collect.look_results import LookResult, refused, side_by_side
from trainprobe.collect.members import host_name
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import Subject
from trainprobe.regular_files import read_regular_file
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user
from trainprobe.stacks.source import Block, Skip, read_places

if TYPE_CHECKING:
    from trainprobe.case import Case

FILE_CAP_BYTES = 2 * 2**20
FILES_CAP = 40
IMPORTED_CAP = 6  # modules that one file imports: only for the functions of a loop that polls
SITES_CAP = 200
DIGEST_CHARACTERS = 16
TEXT_CAP = 400  # of one statement; rules search in it, and not all of them in linear time
# Tracebacks say `File "x.py", line 3, in f`, faulthandler `File "x.py", line 3 in f`.
_IN_TEXT = re.compile(r'File "([^"\n]{1,4096})", line (\d{1,8})(?:,? in ([^\s,]{1,300}))?')


B = TypeVar("B", Block, Skip)


@dataclass(frozen=True)
class SourceSite(Fact):
    """One line and what encloses it, innermost last; `made` is how its function made what it waits
    for, `digest` that of the whole file. Old cases have no `skips`, no `made` and no `digest`.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    blocks: Tuple[Block, ...] = ()
    skips: Tuple[Skip, ...] = ()
    made: str = ""
    exits: Tuple[Skip, ...] = ()
    tries: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Site:
    """A line that somebody stands at, with the rank that does (None: not a rank's)."""

    file: str
    line: int
    function: str = ""
    rank: Optional[int] = None


def sites_in_text(text: str, rank: Optional[int] = None) -> List[Site]:
    """The places that tracebacks and faulthandler's text name, in the order of the text."""
    return [
        Site(file, int(line), function, rank) for file, line, function in _IN_TEXT.findall(text)
    ]


def sites_in_stacks(evidence: Iterable[Evidence]) -> List[Site]:
    """The places in `stacks.python` and `stacks.native` records."""
    sites: List[Site] = []
    for look in evidence:
        for thread in look.data.get("threads", ()):
            frames = [frame for frame in thread.get("frames", ()) if "module" not in frame]
            sites.extend(
                Site(frame["file"], frame["line"], frame["name"], look.subject.rank)
                for frame in frames
            )
    return sites


def look_at_source(
    case: Case,
    cell: str,
    sites: Iterable[Site],
    *,
    cwd: str = "",
    with_libraries: bool = False,
    deadline_s: float = 2.0,
) -> List[Evidence]:
    """Record one `source` per rank and file, for lines that this cell has no record of yet.
    `cwd` is the job's, for relative names.
    """
    known = _known(case, cell)
    lines: Dict[Tuple[str, Optional[int]], Set[int]] = {}
    for site in list(sites)[: SITES_CAP * 20]:
        if (
            site.line > 0
            and (site.rank, site.file, site.line) not in known
            and (with_libraries or is_user(Frame(site.function, site.file, site.line)))
        ):
            lines.setdefault((site.file, site.rank), set()).add(site.line)
    return record_look(
        case,
        COLLECTOR,
        lambda: [
            replace(
                whole,
                data={
                    **whole.data,
                    "sites": [
                        place
                        for place in whole.data.get("sites", ())
                        if place["line"] in lines[file, rank]
                    ],
                },
                subject=Subject("job", host=host_name())
                if rank is None
                else Subject("rank", host=host_name(), rank=rank, role="rank"),
            )
            for (file, rank), whole in _read_files(lines, cwd, deadline_s)
        ],
        cell=cell,
        deadline_s=deadline_s,
    )


def _read_files(
    wanted: Mapping[Tuple[str, Optional[int]], Set[int]], cwd: str, deadline_s: float
) -> Iterator[Tuple[Tuple[str, Optional[int]], LookResult]]:
    """Read each file once, whichever ranks stand in it."""
    files: Dict[str, Set[int]] = {}
    for (file, _), lines in wanted.items():
        files.setdefault(file, set()).update(lines)
    names = list(files)[:FILES_CAP]
    looks = [partial(read_source, name, os.path.join(cwd, name), files[name]) for name in names]
    read = dict(zip(names, side_by_side(looks, deadline_s, at_once=2)))
    cut = refused("unavailable", f"only the first {FILES_CAP} source files are read")
    for place in wanted:
        yield place, read.get(place[0], cut)


def read_source(file: str, path: str, lines: Set[int]) -> LookResult:
    """Find what encloses the lines. `file` is the stack's name, `path` where it lies."""
    from trainprobe.system.answering import silent

    base: Dict[str, Any] = {"file": file, "sites": []}
    silence = silent(path)
    if silence:
        return refused("timed_out", f"{file} was not read: {silence}", **base)
    try:
        content = read_regular_file(path, FILE_CAP_BYTES)
    except ValueError as error:
        return refused("unavailable", f"{file} {error}", **base)
    except PermissionError:
        return refused(
            "denied", f"{file} may not be read by us; run trainprobe as the job's user", **base
        )
    except OSError as error:
        return refused("unavailable", f"{file} cannot be read: {error.strerror}", **base)
    base["digest"] = hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]
    imported = partial(_imported, path, [])
    found = read_places(_decode(content), sorted(lines)[:SITES_CAP], imported)
    base["sites"] = [asdict(place) for place in found.places]
    if found.flaw:
        return refused(
            "partial" if base["sites"] else "unavailable", f"{file}: {found.flaw}", **base
        )
    if len(found.places) < len(lines):
        return refused(
            "partial",
            f"{file} has fewer lines than the stack names; it was changed after the job had"
            " started, or is another file",
            **base,
        )
    return LookResult(base)


def _imported(path: str, opened: List[str], name: str, level: int) -> Optional[str]:
    """The text of a module of the user's own that the file at `path` imports, where it lies near
    that file; None of libraries and of what cannot be read. `opened` are those tried before.
    """
    from trainprobe.system.answering import silent

    folder = os.path.dirname(path)
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    parts = [part for part in name.split(".") if part]
    folders = [folder] if level else [folder, os.path.dirname(folder)]
    for base in folders:
        place = os.path.join(base, *parts)
        for candidate in (f"{place}.py", os.path.join(place, "__init__.py")):
            if len(opened) >= IMPORTED_CAP or not is_user(Frame("", candidate, 1)):
                return None
            try:
                if silent(candidate) or not os.path.isfile(candidate):
                    continue
                opened.append(candidate)
                return _decode(read_regular_file(candidate, FILE_CAP_BYTES))
            except (OSError, ValueError):
                continue
    return None


def _decode(content: bytes) -> str:
    """By the file's coding line, as Python reads it; what does not fit becomes a question mark."""
    rows = iter(content.splitlines(keepends=True)[:2])
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(rows, b""))
        return content.decode(encoding, "replace")
    except (SyntaxError, LookupError, ValueError):
        return content.decode("utf-8", "replace")


def _known(case: Case, cell: str) -> Set[Tuple[Optional[int], str, int]]:
    """What this cell has already: a second look seldom stands at new lines."""
    known: Set[Tuple[Optional[int], str, int]] = set()
    for look in case.evidence:
        if look.kind == "source" and look.cell == cell:
            known.update(
                (look.subject.rank, str(look.data.get("file")), site["line"])
                for site in look.data.get("sites", ())
            )
    return known


def parse(record: Evidence) -> List[Fact]:
    file = fields.text(record.data, "file")
    digest = fields.text(record.data, "digest", cap=DIGEST_CHARACTERS)

    def site(row: Mapping[str, Any]) -> Fact:
        if fields.whole(row, "line") is None:
            raise fields.UnreadableError("a site without a line")
        return fields.fact(
            SourceSite,
            record,
            row,
            rank=record.subject.rank,
            file=fields.text(row, "file") or file,
            text=fields.text(row, "text", cap=TEXT_CAP),
            blocks=_enclosing(Block, row, "blocks"),
            skips=_enclosing(Skip, row, "skips"),
            exits=_enclosing(Skip, row, "exits"),
            digest=digest,
        )

    return fields.each(fields.items(record.data, "sites"), site)


def _enclosing(kind: Type[B], row: Mapping[str, Any], name: str) -> Tuple[B, ...]:
    def build(part: Mapping[str, Any]) -> B:
        text = fields.text(part, "text", cap=TEXT_CAP)
        branch = fields.text(part, "branch") or "body"
        made = fields.text(part, "made", cap=TEXT_CAP)
        return fields.build(kind, part, text=text, branch=branch, made=made)

    return tuple(fields.each(fields.items(row, name), build))


COLLECTOR = Collector(
    "source",
    None,
    deadline_s=2.0,
    source="source text",
    rounds=(),
    parse=parse,
    facts=(SourceSite,),
)
