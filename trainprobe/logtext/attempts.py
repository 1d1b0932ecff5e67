"""Finds where a job begins, ends and restarts: elastic restarts, requeues of a scheduler, loops
around a launcher.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trainprobe.logtext.steps import read_step

READ = 1000
FIRST_LINES = 12
NO_STEP = -1  # of a line that tells of no step
_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|\d{1,20}")
_PATH_ATTEMPT = re.compile(
    r"(?:^|[/\\])(?:attempt|restart|retry)[_-]?(\d{1,5})(?=[/\\])", re.IGNORECASE
)


class Mark(NamedTuple):
    """What a line says about the life of the job.

    `kind`: restart (the group will be restarted), attempt (a new one begins here), begin (a
    launcher starts, perhaps one of several nodes'), failed (this attempt has lost a process), end
    (this attempt is over). `number` counts attempts from 0, where the line has it. `finished` marks
    an end by success.
    """

    kind: str
    number: int | None = None
    finished: bool = False


# (a text that must be in the line, kind, pattern). Sources:
# torch/distributed/elastic/agent/server/api.py 1.9 to 2.13 (and its copies in DeepSpeed's
# elasticity and NVIDIA's resiliency extension), torch/distributed/run.py, Slurm's slurmstepd,
# Lightning's signal connector, Ray Train.
_COUNT = r"TORCHELASTIC_RESTART_COUNT['\"]?\s{0,2}[=:]\s{0,2}['\"]?(?P<n>\d{1,5})\b"
_THREADS = r"Setting OMP_NUM_THREADS environment variable for each process to be \d"
_ACCELERATE = r"The following values were not passed to `accelerate launch`"
_LOST = r"failed \(exitcode: -?\d{1,5}\) local_rank: \d{1,5} \(pid: \d{1,9}\)"
_CANCELLED = r"\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,400} CANCELLED AT "
_REQUEUED = (
    r"(?i)\brequeu?e?ing (?:job|slurm job)\b|\bRequeued SLURM job\b"
    r"|\bjob (?:has been |was )?requeued\b"
)
_ATTEMPT = (
    r"(?i)^\W{0,20}(?:\w{1,20} ){0,3}?"
    r"attempt\s?[#:=]?\s?(?P<n1>\d{1,4})(?:\s?(?:/|of)\s?\d{1,4})?\b"
)
_RESTART = (
    r"(?i)^\W{0,20}(?:\w{1,20} ){0,2}?"
    r"restart(?:ed|ing)?\s?(?:count|number|no\.?|#)?\s?[#:=]\s?(?P<n>\d{1,4})\b"
)
_WILL_RESTART = (
    r"(?P<left>\d{1,4})/(?P<most>\d{1,4}) attempts left; will restart worker group"
    r"|will restart worker group"
)
_MARKS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (literal, kind, re.compile(pattern))
    for literal, kind, pattern in (
        ("will restart worker group", "restart", _WILL_RESTART),
        ("estarting worker group", "restart", r"\bRestarting worker group\b"),
        ("Rendezvous'ing worker group", "joining", r"Rendezvous'ing worker group"),
        ("restart_count=", "count", r"\brestart_count=(?P<n>\d{1,5})\b"),
        ("TORCHELASTIC_RESTART_COUNT", "count", _COUNT),
        ("tarting worker group", "joining", r"\] Starting worker group\b"),
        ("launch configs:", "begin", r"Starting elastic_operator with launch configs:"),
        ("OMP_NUM_THREADS", "begin", _THREADS),
        ("accelerate launch", "begin", _ACCELERATE),
        ("runner.py", "begin", r"\[runner\.py:\d{1,5}:main\] cmd = "),
        ("(exitcode:", "failed", _LOST),
        ("ChildFailedError", "end", r"ChildFailedError: ?$"),
        ("Root Cause (first observed failure)", "end", r"Root Cause \(first observed failure\)"),
        ("REQUEUE", "requeue", _CANCELLED + r"\S{1,30} DUE TO (?:JOB REQUEUE|JOB REQUEUED)"),
        ("CANCELLED AT", "end", _CANCELLED),
        ("equeu", "requeue", _REQUEUED),
        ("RETRY", "requeue", r"\[FailurePolicy\] (?:Decision: FailureDecision\.)?RETRY"),
        ("ecover", "requeue", r"Attempting to recover (?:from |the )?(?:training|trial|worker)"),
        ("ackoff", "end", r"(?i)Back-?off restarting failed container"),
        ("ttempt", "attempt", _ATTEMPT),
        ("estart", "attempt", _RESTART),
    )
)
_LITERALS = re.compile("|".join(sorted({re.escape(literal) for literal, _, _ in _MARKS})))
# Attempts at something smaller than the job.
_SMALLER = re.compile(
    r"connect|download|upload|fetch|request|reach|http|url|rendezvous|log"
    r" ?in|acquir|lock|resolv|retry|import|read|write|open|bind|send|allocat|attempted|checkpoint"
    r"|save|load",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"worker group successfully finished|Local worker group finished"
    r" \(WorkerState\.SUCCEEDED|`?Trainer\.fit`? stopped: |Training completed\. Do not forget to"
    r" share your model"
    r"|^\W{0,30}(?:Training|Finetuning|Fine-tuning|Pretraining) (?:has )?(?:completed|finished|is"
    r" done)\b"
)
_MAY_END = re.compile("inish|ompleted|stopped:| done")


def mark(line: str) -> Mark | None:
    """Return the mark in a plain line without prefixes; None for almost all lines."""
    text = line[:READ]
    if _LITERALS.search(text) is None:
        return (
            Mark("end", finished=True) if _MAY_END.search(text) and _FINISHED.search(text) else None
        )
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
    """Return the attempt in a path (`attempt_1/3/stderr.log` of torchrun's --log-dir), or None."""
    found = _PATH_ATTEMPT.findall(path)
    return int(found[-1]) if found else None


class Attempts:
    """Counts the attempts in one stream of lines. Feed it the first lines, and those that
    `may_mark`, at least.
    """

    def __init__(self, first: int = 0) -> None:
        self.number = first
        self._announced: int | None = None
        self._waiting = False
        self._over = False
        self._failed = False
        self._shapes: list[str] = []
        self._begins_with_step = False
        self._last_step = NO_STEP

    def feed(self, line: str) -> int:
        """Return the attempt, from 0, that the plain line without prefixes belongs to."""
        if (self._failed or self._waiting) and self._is_first_line(line):
            self._next(self._announced)
        elif len(self._shapes) < FIRST_LINES and line.strip():
            if not self._shapes:
                self._begins_with_step = _step(line) != NO_STEP
            self._shapes.append(_shape(line))
        if self._begins_with_step:
            self._last_step = max(self._last_step, _step(line))
        found = mark(line)
        if found is not None:
            self._apply(found)
        return self.number

    def _apply(self, found: Mark) -> None:
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
        self._last_step = NO_STEP

    def _is_first_line(self, line: str) -> bool:
        """Whether the line repeats the first line of the stream. A log that begins with an error
        may end with one, and a step begins again only where it is counted lower.
        """
        return (
            not line.startswith(("Traceback (", " ", "During handling of", "The above exception"))
            and len(line.strip()) >= 12
            and any(character.isdecimal() or character.isalpha() for character in line)
            and _shape(line) in self._shapes[:1]
            and (not self._begins_with_step or _step(line) < self._last_step)
        )


def may_mark(line: str) -> bool:
    """A quick test whether `mark` could find something."""
    return _LITERALS.search(line) is not None or _MAY_END.search(line) is not None


def _step(line: str) -> int:
    told = read_step(line[:READ])
    return told.step if told is not None and told.step is not None else NO_STEP


def _shape(line: str) -> str:
    return _NUMBER.sub("#", line[:200]).strip()
