"""Where a job begins, ends, and begins again: restarts of an elastic job, requeues of a scheduler, loops around a launcher."""

from __future__ import annotations

import re
from typing import NamedTuple

READ = 1000
FIRST_LINES = 12
_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|\d{1,20}")
_PATH_ATTEMPT = re.compile(r"(?:^|[/\\])(?:attempt|restart|retry)[_-]?(\d{1,5})(?=[/\\])", re.IGNORECASE)


class Mark(NamedTuple):
    """What a line says of the job's life.

    `kind`: restart (the group will be started again), attempt (a new one begins here), begin (a launcher starts, which may be one of
    several nodes'), failed (this attempt has lost a process), end (this attempt is over). `number` is the attempt's, counted from 0, where it is told. `finished` marks an end by success.
    """

    kind: str
    number: int | None = None
    finished: bool = False


# (a text that must be in the line, kind, pattern). Sources: torch/distributed/elastic/agent/server/api.py 1.9 to 2.13 (and its copies in
# DeepSpeed's elasticity and NVIDIA's resiliency extension), torch/distributed/run.py, Slurm's slurmstepd, Lightning's signal connector, Ray Train.
_MARKS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (literal, kind, re.compile(pattern, flags))
    for literal, kind, pattern, flags in (
        ("will restart worker group", "restart", r"(?P<left>\d{1,4})/(?P<most>\d{1,4}) attempts left; will restart worker group|will restart worker group", 0),
        ("estarting worker group", "restart", r"\bRestarting worker group\b", 0),
        ("Rendezvous'ing worker group", "joining", r"Rendezvous'ing worker group", 0),
        ("restart_count=", "count", r"\brestart_count=(?P<n>\d{1,5})\b", 0),
        ("TORCHELASTIC_RESTART_COUNT", "count", r"TORCHELASTIC_RESTART_COUNT['\"]?\s{0,2}[=:]\s{0,2}['\"]?(?P<n>\d{1,5})\b", 0),
        ("tarting worker group", "joining", r"\] Starting worker group\b", 0),
        ("launch configs:", "begin", r"Starting elastic_operator with launch configs:", 0),
        ("OMP_NUM_THREADS", "begin", r"Setting OMP_NUM_THREADS environment variable for each process to be \d", 0),
        ("accelerate launch", "begin", r"The following values were not passed to `accelerate launch`", 0),
        ("runner.py", "begin", r"\[runner\.py:\d{1,5}:main\] cmd = ", 0),
        ("(exitcode:", "failed", r"failed \(exitcode: -?\d{1,5}\) local_rank: \d{1,5} \(pid: \d{1,9}\)", 0),
        ("ChildFailedError", "end", r"ChildFailedError: ?$", 0),
        ("Root Cause (first observed failure)", "end", r"Root Cause \(first observed failure\)", 0),
        ("REQUEUE", "requeue", r"\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,400} CANCELLED AT \S{1,30} DUE TO (?:JOB REQUEUE|JOB REQUEUED)", 0),
        ("CANCELLED AT", "end", r"\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,400} CANCELLED AT ", 0),
        ("equeu", "requeue", r"\brequeu?e?ing (?:job|slurm job)\b|\bRequeued SLURM job\b|\bjob (?:has been |was )?requeued\b", re.IGNORECASE),
        ("RETRY", "requeue", r"\[FailurePolicy\] (?:Decision: FailureDecision\.)?RETRY", 0),
        ("ecover", "requeue", r"Attempting to recover (?:from |the )?(?:training|trial|worker)", 0),
        ("ackoff", "end", r"Back-?off restarting failed container", re.IGNORECASE),
        ("ttempt", "attempt", r"^\W{0,20}(?:\w{1,20} ){0,3}?attempt\s?[#:=]?\s?(?P<n1>\d{1,4})(?:\s?(?:/|of)\s?\d{1,4})?\b", re.IGNORECASE),
        ("estart", "attempt", r"^\W{0,20}(?:\w{1,20} ){0,2}?restart(?:ed|ing)?\s?(?:count|number|no\.?|#)?\s?[#:=]\s?(?P<n>\d{1,4})\b", re.IGNORECASE),
    )
)
_LITERALS = re.compile("|".join(sorted({re.escape(literal) for literal, _, _ in _MARKS})))
# Attempts at something smaller than the job.
_SMALLER = re.compile(
    r"connect|download|upload|fetch|request|reach|http|url|rendezvous|log ?in|acquir|lock|resolv|retry|import|read|write|open|bind|send|allocat|attempted|checkpoint|save|load",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"worker group successfully finished|Local worker group finished \(WorkerState\.SUCCEEDED|`?Trainer\.fit`? stopped: |Training completed\. Do not forget to share your model"
    r"|^\W{0,30}(?:Training|Finetuning|Fine-tuning|Pretraining) (?:has )?(?:completed|finished|is done)\b"
)
_MAY_END = re.compile("inish|ompleted|stopped:| done")


def mark(line: str) -> Mark | None:
    """Return what a plain line (without who says it) tells of the job's life; None for almost all lines."""
    text = line[:READ]
    if _LITERALS.search(text) is None:
        return Mark("end", finished=True) if _MAY_END.search(text) and _FINISHED.search(text) else None
    for literal, kind, pattern in _MARKS:
        if literal not in text:
            continue
        match = pattern.search(text)
        if match is None:
            continue
        part = match.groupdict()
        if kind == "attempt" and (_SMALLER.search(text) or len(text) > 120):
            continue
        if part.get("left") and part.get("most"):
            return Mark("restart", int(part["most"]) - int(part["left"]) + 1)
        if part.get("n1"):
            return Mark(kind, max(0, int(part["n1"]) - 1))
        return Mark(kind, int(part["n"]) if part.get("n") else None)
    return Mark("end", finished=True) if _FINISHED.search(text) else None


def attempt_of_path(path: str) -> int | None:
    """Return the attempt that a path names (`attempt_1/3/stderr.log` of torchrun's --log-dir), None where it names none."""
    found = _PATH_ATTEMPT.findall(path)
    return int(found[-1]) if found else None


class Attempts:
    """Counts the attempts of one stream of lines. Feed it every line, or at least those for which `may_mark` holds and the first ones."""

    def __init__(self, first: int = 0) -> None:
        self.number = first
        self._announced: int | None = None
        self._waiting = False
        self._over = False
        self._failed = False
        self._shapes: list[str] = []

    def feed(self, line: str) -> int:
        """Return the attempt (0 first) that the plain line, without who says it, belongs to."""
        if (self._failed or self._waiting) and self._is_first_line(line):
            self._next(self._announced)
        elif len(self._shapes) < FIRST_LINES and line.strip():
            self._shapes.append(_shape(line))
        found = mark(line)
        if found is not None:
            self._told(found)
        return self.number

    def _told(self, found: Mark) -> None:
        if found.kind == "count" or (found.kind == "attempt" and found.number is not None):
            if found.number is not None and found.number > self.number:
                self._next(found.number)
        elif found.kind == "restart":
            if found.number is None or found.number > self.number:
                self._announced, self._waiting = found.number, True
        elif found.kind == "joining":
            if self._waiting:
                self._next(self._announced)
        elif found.kind == "begin":
            if self._over:
                self._next(None)
        elif found.kind in ("failed", "end", "requeue"):
            self._over = True
            self._failed = self._failed or found.kind != "end" or not found.finished

    def _next(self, number: int | None) -> None:
        self.number = number if number is not None and number > self.number else self.number + 1
        self._announced, self._waiting, self._over, self._failed = None, False, False, False

    def _is_first_line(self, line: str) -> bool:
        """Whether the very first line that told something is said again. A log that begins with an error may end with one."""
        return (
            not line.startswith(("Traceback (", " ", "During handling of", "The above exception"))
            and len(line.strip()) >= 12
            and any(character.isdigit() or character.isalpha() for character in line)
            and _shape(line) in self._shapes[:1]
        )


def may_mark(line: str) -> bool:
    """Say quickly whether `mark` could find something."""
    return _LITERALS.search(line) is not None or _MAY_END.search(line) is not None


def _shape(line: str) -> str:
    return _NUMBER.sub("#", line[:200]).strip()
