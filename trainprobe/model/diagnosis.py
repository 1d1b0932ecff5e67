"""The answer: verdict, suspects, ranked causes, and what stayed open. It is what
`trainprobe.report/1` is written from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Optional, Tuple

from trainprobe.model.predictions import Prediction
from trainprobe.model.waits import SuspectHow

Risk = Literal["safe", "disruptive", "needs-admin"]
Who = Literal["user", "admin"]
Verdict = Literal["healthy", "slow", "hung", "crashed", "at-risk", "undetermined"]
RungOutcome = Literal["passed", "failed", "timed_out", "crashed", "skipped", "not_measured"]
RankState = Literal[
    "waiting", "computing", "spinning", "stopped", "blocked", "exited", "crashed", "unseen"
]
Family = Literal[
    "probe-outcome",
    "process-state-and-locks",
    "suspects-stack",
    "other-stacks",
    "flight-recorder",
    "exit-status",
    "suspects-log",
    "kernel-log",
    "gpu",
    "host-pressure",
    "environment-and-limits",
    "network",
    "storage",
    "scheduler",
    "source",
]
REPORT_SCHEMA = "trainprobe.report/1"


@dataclass(frozen=True)
class Weighing:
    """Evidence points for or against a cause, in decibans: ±3, ±6, ±10, ±13, or ±26 when decisive.

    Decisive means that it settles the matter alone; a decisive negative eliminates the cause.
    """

    points: int
    family: Family
    says: str
    evidence: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if abs(self.points) not in (3, 6, 10, 13, 26):
            raise ValueError(f"{self.points} is not one of ±3, ±6, ±10, ±13, ±26")


@dataclass(frozen=True)
class Fix:
    """What to type. `risk` is about the job and the machine; `verify` is the command that shows
    that it worked.
    """

    title: str
    steps: Tuple[str, ...] = ()
    risk: Risk = "safe"
    who: Who = "user"
    verify: str = ""


@dataclass(frozen=True)
class Link:
    """One step of a chain, in words."""

    waiter: str
    awaited: str
    how: str
    evidence: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Suspect:
    """Where the trouble sits: a sink or a cycle of the graph, as a set of ranks; `ranks` is
    empty when it is the host's or the code's.
    """

    ranks: Tuple[int, ...]
    hosts: Tuple[str, ...]
    how: SuspectHow
    says: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CauseClass:
    """What is sure before the cause is: where the trouble sits and what kind it is, such as
    `rank-held-up`. `confidence` is the probability that this is right, whatever the cause.
    """

    id: str
    title: str
    confidence: float
    says: str = ""


@dataclass(frozen=True)
class PlacedCause:
    """A cause with its place in the ranking. `id` is `unknown` where no cause is named.

    `classes` hold it, from general to special; only the first cause of each group has them. Of an
    `unknown` that has some, `title`, `summary` and `confidence` are those of the last, and the
    shares of the candidates behind it are within that class. One without any is not located: its
    `confidence` is the probability that nothing in the catalogue fits.
    """

    id: str
    title: str
    confidence: float
    points: int
    named: bool
    ranks: Tuple[int, ...] = ()
    hosts: Tuple[str, ...] = ()
    pids: Tuple[int, ...] = ()
    gpus: Tuple[int, ...] = ()
    summary: str = ""
    chain: Tuple[Link, ...] = ()
    because: Tuple[Weighing, ...] = ()
    fixes: Tuple[Fix, ...] = ()
    docs: str = ""
    group: int = 0
    classes: Tuple[CauseClass, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RankRow:
    """One rank as it was last seen; `rank` is None for a process of the job whose number nobody
    knows. `since_s` is how long it has been in that state, None when unknown. `source` is the line
    of the program at `where`, empty where it was not read.
    """

    rank: Optional[int]
    host: str = ""
    pid: Optional[int] = None
    state: RankState = "unseen"
    where: str = ""
    waits_for: str = ""
    since_s: Optional[float] = None
    source: str = ""


@dataclass(frozen=True)
class World:
    size: int = 0
    ranks: Tuple[RankRow, ...] = ()


@dataclass(frozen=True)
class Cascade:
    """Victims: ranks that carry no blame, and the index into `causes` of what they suffer from."""

    ranks: Tuple[int, ...]
    says: str
    because_of: int


@dataclass(frozen=True)
class RuledOut:
    id: str
    why: str


@dataclass(frozen=True)
class Undecided:
    """Something that could not be settled, and the cheapest step that would settle it.
    `cannot-look` stands here.
    """

    id: str
    would_settle: str


@dataclass(frozen=True)
class Notice:
    """Something that a rung saw and let pass: no fault yet, but worth knowing when something else
    goes wrong.

    `check` is the rung's name for it; of what lint says of the script's source it is `lint.` and
    the id of the cause that it would become.
    """

    check: str
    says: str
    fix: str = ""
    cell: str = ""


@dataclass(frozen=True)
class Measure:
    """A number with its unit. `threshold` and `source` say what it is held against and where
    that comes from.
    """

    name: str
    value: float
    unit: str = ""
    threshold: Optional[float] = None
    source: str = ""
    who: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LadderRow:
    """One rung, or one cell of a rung that climbs (`cell` such as user_script@4)."""

    rung: int
    probe: str
    outcome: RungOutcome
    took_s: float = 0.0
    ranks: Tuple[int, ...] = ()
    measures: Tuple[Measure, ...] = ()
    says: str = ""
    question: str = ""
    cell: str = ""
    nproc: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClimbCell:
    """The user's command once: on so many ranks, with so many rows (null where they are not ours to
    set), with one knob changed or none.

    `applied` says of a knob whether it took effect, null where nobody could tell or where none was
    changed. `took_s` in seconds.
    """

    cell: str
    ranks: int
    rows: Optional[int] = None
    knob: str = ""
    outcome: RungOutcome = "not_measured"
    took_s: float = 0.0
    applied: Optional[bool] = None
    says: str = ""


@dataclass(frozen=True)
class Climb:
    """The user's command over a grid of ranks and rows, smallest first, and then the smallest
    failing cell with one knob changed at a time.

    `healed_by` are the knobs with which that cell passed, `not_healed_by` those with which it still
    failed; a knob that did not take effect is in neither. `steady` is false where the same cell
    passed when it was run once more unchanged, null where that was not tried.
    `next` is what one would try by hand. `total_s` is the time from the first cell's start to the
    last one's end, `cells_s` the sum over the cells.
    """

    cells: Tuple[ClimbCell, ...] = ()
    smallest_failing: Optional[ClimbCell] = None
    healed_by: Tuple[str, ...] = ()
    not_healed_by: Tuple[str, ...] = ()
    steady: Optional[bool] = None
    says: str = ""
    next: str = ""
    total_s: float = 0.0
    cells_s: float = 0.0


@dataclass(frozen=True)
class StackClass:
    """Ranks that stand at the same place. `ranks` is folded (`0,2-3`), `frames` are outermost
    first.
    """

    ranks: str
    frames: Tuple[str, ...]


@dataclass(frozen=True)
class StackBranch:
    """A frame of the prefix tree: the ranks whose stacks run through it (`0,2-3`), and what they
    called next.
    """

    ranks: str = ""
    frame: str = ""
    next: Tuple[StackBranch, ...] = ()


@dataclass(frozen=True)
class Stacks:
    """`classes` are whole stacks; `tree` merges them from the outermost frame on, library frames
    folded.
    """

    classes: Tuple[StackClass, ...] = ()
    tree: Tuple[StackBranch, ...] = ()


@dataclass(frozen=True)
class Expiry:
    """A moment after which a live job cannot be looked at any more. `left_s` seconds until then
    and `ends_at` in Unix time; None where unknown.
    """

    what: str
    left_s: Optional[float] = None
    ends_at: Optional[float] = None
    source: str = ""
    says: str = ""


@dataclass(frozen=True)
class Killing:
    """What is lost when the job is ended now: everything since its newest checkpoint, `age_s`
    seconds ago; None where none was found.
    """

    checkpoint: Optional[str] = None
    age_s: Optional[float] = None
    says: str = ""


@dataclass(frozen=True)
class TimelineRanks:
    """Ranks that came equally far and ended alike, by their logs. `ranks` is folded (`0,2-3`),
    empty for lines that name no rank.
    """

    ranks: str
    last_step: str = ""
    last_collective: str = ""
    first_error: str = ""
    exit: str = ""


@dataclass(frozen=True)
class TimelineEvent:
    """One failure, or all echoes of one kind. `at` is Unix time in seconds, `seen_at` the file and
    line, `where` the line of the program.

    `echo` is true for what only repeats another rank's end, `echo_of` says which kind; `count` is
    how often it was seen.
    """

    ranks: Tuple[int, ...]
    says: str
    at: Optional[float] = None
    seen_at: str = ""
    where: str = ""
    echo: bool = False
    echo_of: str = ""
    count: int = 1


@dataclass(frozen=True)
class TimelineAttempt:
    """One attempt of a job as its logs tell of it: how far each rank came, and the failures in
    their order.
    """

    attempt: str
    verdict: Verdict
    says: str = ""
    files: Tuple[str, ...] = ()
    world_size: Optional[int] = None
    first_at: Optional[float] = None
    last_at: Optional[float] = None
    ranks: Tuple[TimelineRanks, ...] = ()
    events: Tuple[TimelineEvent, ...] = ()


@dataclass(frozen=True)
class Tool:
    name: str
    version: str


@dataclass(frozen=True)
class Diagnosis:
    """The whole answer. `conclusive` is false when something that could have changed the verdict
    was not seen.

    `says` is the headline in one sentence, subject first. `looked_s` is how long gathering took, in
    seconds.
    `expiry`, `killing` and `advice` are for live jobs: how long they can still be looked at, what
    ending them costs, and what to do.
    """

    verdict: Verdict
    conclusive: bool
    says: str = ""
    world: World = World()
    suspects: Tuple[Suspect, ...] = ()
    causes: Tuple[PlacedCause, ...] = ()
    cascade: Tuple[Cascade, ...] = ()
    unexplained: Tuple[str, ...] = ()
    ruled_out: Tuple[RuledOut, ...] = ()
    undecided: Tuple[Undecided, ...] = ()
    ladder: Tuple[LadderRow, ...] = ()
    stacks: Stacks = Stacks()
    warnings: Tuple[Notice, ...] = ()
    expiry: Tuple[Expiry, ...] = ()
    killing: Optional[Killing] = None
    advice: str = ""
    predictions: Tuple[Prediction, ...] = ()
    climb: Optional[Climb] = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """`trainprobe.report/1`: what `--json` writes. `case` is the folder as it was named when the
    case was made.
    """

    schema: str
    tool: Tool
    command: str
    case: str
    verdict: Verdict
    conclusive: bool
    says: str
    world: World
    suspects: Tuple[Suspect, ...]
    causes: Tuple[PlacedCause, ...]
    cascade: Tuple[Cascade, ...]
    unexplained: Tuple[str, ...]
    ruled_out: Tuple[RuledOut, ...]
    undecided: Tuple[Undecided, ...]
    ladder: Tuple[LadderRow, ...]
    stacks: Stacks
    looked_s: float = 0.0
    warnings: Tuple[Notice, ...] = ()
    expiry: Tuple[Expiry, ...] = ()
    killing: Optional[Killing] = None
    advice: str = ""
    predictions: Tuple[Prediction, ...] = ()
    climb: Optional[Climb] = None
    extra: Mapping[str, Any] = field(default_factory=dict)
