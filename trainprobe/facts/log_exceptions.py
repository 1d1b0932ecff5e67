"""Exceptions and deaths by signal in the kept lines of logs, each with its rank, its place and
its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trainprobe.facts.exceptions import RankException, exception_of
from trainprobe.facts.fatal_signals import fatal_signal
from trainprobe.facts.kernel_logs import add_kernel_fact, kernel_fact
from trainprobe.facts.log_rows import Row, rows_of, streams
from trainprobe.logtext.interleaved_tracebacks import separate_tracebacks
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.faulthandler_text import parse_deaths
from trainprobe.stacks.traceback_forms import bare_errors, classic
from trainprobe.stacks.traceback_text import NAME_CUT_OFF, Printed, Raised, parse_tracebacks

EACH_CAP = 40  # of one rank and file: the first ones tell what happened
PRESSED = "KeyboardInterrupt"
_WAITING = re.compile(
    r"/(?:threading|selectors|subprocess|multiprocessing/(?:connection|popen_fork|synchronize)"
    r"|torch/utils/(?:cpp_extension|file_baton))\.py$"
)
_AN_ERROR = re.compile(r"(?i)\b(?:error|fatal|critical|killed)\b")
_A_WAIT = re.compile(
    r"^(?!raise\b).{0,80}(?:\.(?:acquire|wait|select|poll|join|_semlock\.__enter__)|os\.waitpid|_recv|_poll)\("
    # torch's lock of an extension build, of which nothing but the wait is called by its name
    r"|^baton\.(?:w(?:a(?:it?)?)?)?$|^time\.sleep\(self\.wait_seconds\)"
)
WARNED = "warning"  # the source of an exception that its program seems to have lived through
# torch.multiprocessing.spawn names the process before its traceback; multiprocessing itself after
# `Process`.
_SPAWNED = re.compile(r"-- Process (\d{1,7}) terminated with the following error")
_TRIED_AGAIN = re.compile(
    r"(?i)\b(?:retry(?:ing)?|will try again|(?<!been )(?<!safely"
    r" )ignor(?:e|ed|ing)|skipp(?:ed|ing)|fall(?:ing)? ?back|falls back|suppressed|continuing"
    r" without)\b"
)
# Words of a logger that tells of something it lived through.
_MILD = re.compile(r"(?:^|[\s\[|:])(?:WARN(?:ING)?|DEBUG|INFO)\b")


def parse_log_exceptions(record: Evidence) -> list[Fact]:
    """Every traceback, and every line that says only an exception's type and message where no
    traceback says the same.
    """
    found: list[RankException] = []
    for rank, rows in _by_process(streams(rows_of(record))):
        lines = classic([row.text for row in rows])
        raised: list[RankException] = []
        whole: set[tuple[str, str]] = set()
        inside: set[int] = set()
        for printed in parse_tracebacks(lines):
            fact = _fact(record, printed, rows, rank, lines)
            raised.append(fact)
            whole.update(
                (one.type.rsplit(".", 1)[-1], _begin(one.message)) for one in printed.chain
            )
            whole.add((fact.type.rsplit(".", 1)[-1], _begin(fact.message)))
            inside.update(range(printed.begins, printed.begins + 2))
        for place, kind, message in bare_errors(lines):
            key = (kind.rsplit(".", 1)[-1], _begin(message))
            if key not in whole and place not in inside:
                whole.add(key)
                raised.append(
                    _fact(
                        record, Printed((Raised(kind, message),), begins=place), rows, rank, lines
                    )
                )
        raised.sort(key=lambda fact: fact.place or 0)
        found += raised[:EACH_CAP]
    # Ctrl-C reaches all processes of a terminal
    if any(fact.type == PRESSED for fact in found):
        found = [replace(fact, type=PRESSED) if _cut(fact) else fact for fact in found]
    return list(found)


def _cut(fact: RankException) -> bool:
    return fact.type == NAME_CUT_OFF


def _in_a_wait(raised: Raised, above: Sequence[str]) -> bool:
    """Whether a traceback of which the end is cut off ends in a call that waits and raises nothing
    of its own: only a signal gets a program out of it. Below an error that is the one of a child
    that died, else Ctrl-C.
    """
    last = raised.frames[-1] if raised.frames else None
    if last is None or any(_AN_ERROR.search(line[:200]) for line in above):
        return False
    return _WAITING.search(last.file) is not None and _A_WAIT.search(last.text) is not None


def _by_process(by_rank: Mapping[int | None, list[Row]]) -> Iterator[tuple[int | None, list[Row]]]:
    """Rows that name no rank, apart by their hosts; and tracebacks that were written line by
    line into one another, one after the other.
    """
    for rank, rows in by_rank.items():
        by_host: dict[str, list[Row]] = {}
        for row in rows:
            by_host.setdefault(row.host if rank is None else "", []).append(row)
        for part in by_host.values():
            yield rank, [part[place] for place in separate_tracebacks([row.text for row in part])]


def _begin(message: str) -> str:
    return " ".join(message.split())[:60]


def _fact(
    record: Evidence, printed: Printed, rows: Sequence[Row], rank: int | None, lines: Sequence[str]
) -> RankException:
    row, last = (
        rows[min(printed.begins, len(rows) - 1)],
        rows[min(max(printed.ends, printed.begins), len(rows) - 1)],
    )
    above = [one.text for one in rows[max(0, printed.begins - 3) : printed.begins]]
    pressed = bool(above and above[-1].rstrip().endswith("^C")) or _in_a_wait(
        printed.chain[-1], above
    )
    if printed.chain[-1].type == NAME_CUT_OFF and pressed:
        printed = replace(printed, chain=(replace(printed.chain[-1], type=PRESSED),))
    fact = exception_of(record, printed.chain, "output", row.at)
    before = [lines[at] for at in range(max(0, printed.begins - 3), printed.begins)]
    spawned = next((match for text in before if (match := _SPAWNED.search(text))), None)
    of = int(spawned.group(1)) if spawned is not None and rank is None else rank
    lived = any(
        _TRIED_AGAIN.search(text) and not _SPAWNED.search(text) for text in before[-1:]
    ) or _mildly_logged(row, before)
    after = [text[:200] for text in lines[printed.ends + 1 : printed.ends + 3]]
    lived = lived or any(_TRIED_AGAIN.search(text) and _MILD.search(text) for text in after)
    return replace(
        fact,
        rank=of,
        role="rank" if of is not None or fact.echo_of != "launcher" else "launcher",
        thread=printed.thread,
        handled=printed.ignored or lived,
        source=WARNED if lived and not printed.ignored else fact.source,
        place=last.place,
        host=row.host,
        seen_at=row.seen_at,
    )


def _mildly_logged(row: Row, before: Sequence[str]) -> bool:
    """A traceback that stands in a warning: `WARNING … Traceback`, or right under such a line
    that ends as if it came.
    """
    head = row.text.partition("Traceback")[0]
    return bool(head and _MILD.search(head)) or bool(
        before and _MILD.search(before[-1][:200]) and before[-1].rstrip().endswith(":")
    )


_KERNEL = (
    *(
        "NVRM: Xid",
        "fallen off the bus",
        "Out of memory",
        "out of memory: Kill",
        "Killed process",
        "oom-kill:constraint=",
    ),
    *("segfault at", "traps: ", "general protection"),
)
KERNEL_CAP = 200


def parse_log_kernel(record: Evidence) -> list[Fact]:
    """What stands of a kernel's log among the lines: kills for want of memory, crashes, errors
    of GPUs.
    """
    found: list[Fact] = []
    for row in rows_of(record):
        if any(words in row.text for words in _KERNEL):
            fact = kernel_fact(row.text, {"evidence": (record.id,), "cell": record.cell}, row.at)
            if fact is not None:
                add_kernel_fact(found, fact)
    return found[:KERNEL_CAP]


def parse_log_deaths(record: Evidence) -> list[Fact]:
    """Deaths told of by faulthandler and by C++'s `terminate called …`."""
    found: list[Fact] = []
    for rank, rows in streams(rows_of(record)).items():
        deaths = parse_deaths([row.text for row in rows])
        for death in deaths[:EACH_CAP]:
            row = rows[min(death.begins, len(rows) - 1)]
            found.append(
                replace(
                    fatal_signal(record, rank, death),
                    at=row.at,
                    place=row.place,
                    host=row.host,
                    seen_at=row.seen_at,
                )
            )
    return found
