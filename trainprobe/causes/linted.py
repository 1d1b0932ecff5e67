"""What lint says of a cause, in one place for all of them: evidence of the family `source`, and
warnings about what was not needed.

A pattern in source tells that something can go wrong, not that it has. So a finding strengthens a
cause that shows itself, with few points, and more where a stack or a traceback stands at its line;
`ranking` lets it take no name away from what was measured. Only where that fits two causes, one
standing for the other, and all ranks stand in the code that the finding is about, it decides
between the two. A cause that shows nothing else is only called possible, and only where somebody
stands there. Nothing here makes a healthy run ill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.facts import Facts, LintFinding, LintRead, RankException
from trainprobe.model.diagnosis import Fix, Notice, PlacedCause, Weighing
from trainprobe.stacks.frames import Frame
from trainprobe.waits.grid import COMMAND
from trainprobe.waits.suspects import PROBE

LIKELY = 0.75
"""From this confidence on lint is seldom wrong: judgement over its findings in code that nobody
here wrote.
"""
SHOWN_FROM = 0.5
"""Below it a finding is a hint, which says something only where a suspect's stack stands."""
NEAR_LINES = 5
"""A frame's line is that of the call's first or of its last line, and few calls are longer."""
POINTS = {(False, False): 3, (True, False): 6, (False, True): 6, (True, True): 10}
"""By (likely, near). Measured evidence has 10 and 13: what is read never outweighs it."""
NOTICES_CAP = 5


@dataclass(frozen=True)
class Linted:
    """One finding, weighed for the cause that it names. `near`: a suspect's stack or traceback
    stands at its line, or in the code that it is about.

    `holds_all`: all ranks stand in that code, so that what it says may be what parted them.
    """

    weighing: Weighing
    near: bool
    finding: LintFinding
    holds_all: bool = False

    @property
    def fix(self) -> Fix | None:
        if not self.finding.fix:
            return None
        return Fix(
            f"Mend {self.finding.where}",
            (self.finding.fix,),
            verify=f"trainprobe lint {self.finding.file}",
        )


def linted(scene: Scene) -> dict[str, tuple[Linted, ...]]:
    """Findings by cause, the strongest first; empty outside the user's command."""
    found: dict[str, list[Linted]] = {}
    if scene.group.probe not in (COMMAND, PROBE):
        return {}
    findings = _findings(scene.facts)
    places = tuple(_places(scene)) if findings else ()
    for finding in findings:
        near = any(_at(finding, *place) for place in places)
        if finding.confidence < SHOWN_FROM and not near:
            continue
        points = POINTS[finding.confidence >= LIKELY, near]
        stands = ", where a suspect's stack stands" if near else ""
        row = weighing(points, "source", f"{_says(finding)}{stands}", finding)
        found.setdefault(finding.cause, []).append(
            Linted(row, near, finding, near and _holds_all(scene, finding))
        )
    return {
        cause_id: tuple(sorted(rows, key=lambda one: -one.weighing.points))
        for cause_id, rows in found.items()
    }


def with_lint(measured: Sequence[Weighing], printed: Sequence[Linted]) -> tuple[Weighing, ...]:
    """Add lint's findings; one about the same source joins its row, for one family counts once."""
    rows = list(measured)
    own = max(
        (place for place, row in enumerate(rows) if row.family == "source" and row.points > 0),
        key=lambda place: rows[place].points,
        default=None,
    )
    for one in printed:
        if own is None or rows[own].points < one.weighing.points:
            rows.append(one.weighing)
        elif one is printed[0]:
            row = rows[own]
            rows[own] = replace(
                row,
                says=f"{row.says}; so {_says(one.finding)}",
                evidence=tuple(dict.fromkeys((*row.evidence, *one.weighing.evidence))),
            )
    return tuple(rows)


def lint_notices(facts: Facts, placed: Sequence[PlacedCause]) -> tuple[Notice, ...]:
    """What lint found and no named cause tells of, the surest first; and what it could not read."""
    left = sorted(
        (
            one
            for one in _findings(facts)
            if one.confidence >= SHOWN_FROM and not _already_named(one, placed)
        ),
        key=lambda one: -one.confidence,
    )
    rows = [
        Notice(f"lint.{one.cause}", f"{_says(one)} ({round(100 * one.confidence)} % sure)", one.fix)
        for one in left[:NOTICES_CAP]
    ]
    for read in facts.of(LintRead):
        if len(left) > NOTICES_CAP:
            rows.append(
                Notice(
                    "lint",
                    f"lint says {len(left) - NOTICES_CAP} more things: trainprobe lint"
                    f" {read.script}",
                )
            )
        if read.left_out:
            rows.append(Notice("lint", f"lint did not read everything: {read.left_out}"))
    return (
        *rows,
        *(
            Notice("lint", f"lint did not read the script: {one.reason}")
            for one in facts.refused("lint")
            if not one.cell
        ),
    )


def _findings(facts: Facts) -> tuple[LintFinding, ...]:
    """Each once: several nodes of a job read the same source."""
    return tuple(
        {
            (one.cause, one.rule, one.file, one.line, one.says): one
            for one in reversed(facts.of(LintFinding))
        }.values()
    )[::-1]


def _says(finding: LintFinding) -> str:
    return f"lint says {finding.where}: {finding.says.rstrip('.')}"


def _already_named(finding: LintFinding, placed: Iterable[PlacedCause]) -> bool:
    """Does a named cause tell of it?"""
    rows = [
        row
        for cause in placed
        if cause.named and cause.id == finding.cause
        for row in cause.because
        if row.family == "source"
    ]
    return any(_says(finding) in row.says for row in rows)


def _places(scene: Scene) -> Iterator[tuple[str, int, int]]:
    """(file, line, distance that counts) of suspects and of those who wait for them."""
    ranks = [*scene.suspects, *([] if scene.ranks else [None])]
    raised = [one for rank in ranks for one in scene.of(RankException, rank=rank) if not one.echo]
    # those of children too, which a rank only passes on
    stacks: list[Sequence[Frame]] = [one.frames for one in raised]
    stacks += [one.frames for one in (*scene.threads(scene.world), *scene.workers(scene.suspects))]
    for frames in stacks:
        innermost = user_frame(frames)
        for frame in frames:
            if frame.line > 0:
                yield frame.file, frame.line, NEAR_LINES if frame is innermost else 0
    if scene.group.divergence is not None:
        for file, line in scene.group.divergence.sites:
            yield file, line, NEAR_LINES


def _holds_all(scene: Scene, finding: LintFinding) -> bool:
    threads = scene.threads(scene.world)
    return (
        finding.span != (0, 0)
        and len(threads) == len(scene.world) > 1
        and all(any(_within(finding, frame) for frame in one.frames) for one in threads)
    )


def _within(finding: LintFinding, frame: Frame) -> bool:
    return finding.span[0] <= frame.line <= finding.span[1] and _at(
        finding, frame.file, finding.line, 0
    )


def same_file(file: str, read: str) -> bool:
    """Is a stack's file the one that lint read? A stack may name it below another folder."""
    short = file.replace("\\", "/").removeprefix("./")
    return read == short or (bool(short) and read.endswith(f"/{short}"))


def _at(finding: LintFinding, file: str, line: int, far: int) -> bool:
    """Is it the finding's line or code?"""
    inside = finding.span[0] <= line <= finding.span[1] and line > 0
    return (
        same_file(file, finding.file)
        and finding.line > 0
        and (inside or abs(finding.line - line) <= far)
    )
