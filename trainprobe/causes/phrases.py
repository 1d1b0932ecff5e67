"""How causes speak: ranks, places, sizes and times as a reader wants them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc

from trainprobe.causes.commands import job, live_pid
from trainprobe.causes.scene import Scene
from trainprobe.facts import JobRank
from trainprobe.logtext.quotes import quoted
from trainprobe.model.diagnosis import Fix, Risk, Who
from trainprobe.model.ranks import and_list, name_ranks

Fixes = tuple[Fix, ...]
MIB, GIB = 2**20, 2**30


def ranks_say(ranks: Sequence[int], *, capital: bool = True) -> str:
    """`Rank 3`, `Ranks 0 and 2`, `Ranks 0-2 and 5`; `The job` for no rank."""
    text = name_ranks(ranks, nobody="the job")
    return f"{text[:1].upper()}{text[1:]}" if capital else text


def rank_or_process(rank: int | None) -> str:
    """`Rank 3`; `A process` where nobody knows which."""
    return ranks_say([rank]) if rank is not None else "A process"


def subject(scene: Scene, ranks: Sequence[int] | None = None) -> str:
    """`Rank 1 on node7`: the suspects, with their host where it is known."""
    who = scene.ranks if ranks is None else ranks
    hosts = scene.group.hosts or tuple(
        dict.fromkeys(ending.host for ending in scene.endings(who) if ending.host)
    )
    if len(hosts) > 1:
        own = {one.rank: one.host for one in scene.of(JobRank) if one.rank in who}
        hosts = tuple(dict.fromkeys(own[rank] for rank in who)) if set(own) == set(who) else hosts
    host = hosts or ((scene.plan.host,) if scene.plan.host else ())
    return f"{ranks_say(who)} on {and_list(host)}" if host and who else ranks_say(who)


def verb(ranks: Sequence[int], singular: str, plural: str) -> str:
    """The form of the verb that fits `ranks_say(ranks)`."""
    return plural if len(ranks) > 1 else singular


def size(count: float | None) -> str:
    """Bytes as `1.5 GiB` or `40 MiB`."""
    if count is None:
        return "an unknown amount"
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.0f} MiB"


def short(text: str, limit: int = 160) -> str:
    """The first line that says something, without the stamp and the logger before it, cut to
    `limit` characters.
    """
    return quoted(next((line for line in text.splitlines() if line.strip()), ""), limit)


_INTERPRETER = re.compile(r"python[\d.]*|(?:ba|z|da)?sh|perl|ruby|node|Rscript")


def short_command(cmdline: str, limit: int = 60) -> str:
    """A command line as one would type it, cut to `limit` characters: an interpreter and its script
    without their folders.
    """
    program, _, rest = cmdline.partition(" ")
    name = program.rpartition("/")[2]
    if _INTERPRETER.fullmatch(name) is None:
        return quoted(cmdline, limit)
    script, _, arguments = rest.partition(" ")
    return quoted(" ".join([name, script.rpartition("/")[2] or script, arguments]).strip(), limit)


def sentence(text: str) -> str:
    """With one full stop at its end."""
    cut = text.rstrip(" .")
    return cut if cut.endswith("…") else f"{cut}."


def file_line(file: str, line: int) -> str:
    """`train.py:88`, or an empty string where the place is unknown."""
    return f"{file.rsplit('/', 1)[-1]}:{line}" if file and line else ""


def native_stack(scene: Scene, what: str, pid: int = 0) -> tuple[str, ...]:
    """The steps that show where `what` is in native code; a ladder's job must hang again."""
    if scene.live is not None:
        own = next(
            (process.pid for rank in scene.ranks if (process := scene.process(rank)) is not None), 0
        )
        known = next((one for one in (pid, own) if one > 0), None) or live_pid(scene)
        return (f"py-spy dump --native --pid {known}",)
    return (
        f"start it again: {job(scene) or 'the same command'}",
        f"while it hangs: py-spy dump --native --pid <PID>   (the pid of {what})",
    )


def mend_loop(place: str) -> Fixes:
    """What helps against a loop that goes round and gets nowhere."""
    return fixes(
        """
        Mend the loop: with these data it has no way out
            open {place}: on what does its end depend, and can that still come?
            count its passes, and raise when they are more than there are items
        """,
        place=place,
    )


_PID = r"\b\d{1,10}@\w(?:[\w.-]*\w)?"
_ELSEWHERE = re.compile(rf"{_PID}(?:[ ,]+{_PID})*")


def at_its_host(step: str) -> tuple[str, ...]:
    """A command for processes of several hosts, once per host: `on node3: kill 4711`."""
    lists = [re.split(r"[ ,]+", match[0]) for match in _ELSEWHERE.finditer(step)]
    hosts = dict.fromkeys(one.partition("@")[2] for listed in lists for one in listed)
    if not hosts or any(
        {one.partition("@")[2] for one in listed} != set(hosts) for listed in lists
    ):
        return (step,)

    def of(host: str) -> str:
        def own(match: re.Match[str]) -> str:
            between = re.search(r"[ ,]+", match[0])
            return (between[0] if between else " ").join(
                one.partition("@")[0]
                for one in re.split(r"[ ,]+", match[0])
                if one.partition("@")[2] == host
            )

        return f"on {host}: {_ELSEWHERE.sub(own, step)}"

    return tuple(of(host) for host in hosts)


def fix(title: str, *steps: str, disruptive: bool = False, verify: str = "") -> Fix:
    """A fix for the user. Without `verify` the report repeats the rung that showed the cause."""
    return _fix(title, steps, "disruptive" if disruptive else "safe", "user", verify)


def admin_fix(title: str, *steps: str, verify: str = "") -> Fix:
    """A fix that needs an administrator."""
    return _fix(title, steps, "needs-admin", "admin", verify)


_STEP = 4  # columns
_VERIFY = "verify: "
_MARKS: Mapping[str, tuple[Risk, Who]] = {
    "[admin] ": ("needs-admin", "admin"),
    "[disruptive] ": ("disruptive", "user"),
}


def fixes(text: str, **values: object) -> Fixes:
    """Fixes, written as they are read: each title at the left, its steps indented below it.

    A line that is indented further continues the step above. `[admin]` or `[disruptive]` stands
    before a title, `verify:` before the step that shows success. `{name}` is one of `values`; a
    step that is empty is left out.
    """
    found: list[list[str]] = []
    for line in cleandoc(text).splitlines():
        depth, part = len(line) - len(line.lstrip()), line.strip()
        if depth == 0:
            found.append([part])
        elif depth == _STEP:
            found[-1].append(part)
        else:
            found[-1][-1] += f" {part}"
    return tuple(_read_fix([_filled(part, values) for part in parts]) for parts in found)


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _read_fix(parts: Sequence[str]) -> Fix:
    title = parts[0]
    risk: Risk = "safe"
    who: Who = "user"
    for mark, (marked_risk, marked_who) in _MARKS.items():
        if title.startswith(mark):
            title, risk, who = title.removeprefix(mark), marked_risk, marked_who
    steps = tuple(step for step in parts[1:] if not step.startswith(_VERIFY))
    verify = "".join(step.removeprefix(_VERIFY) for step in parts[1:] if step not in steps)
    return _fix(title, steps, risk, who, verify)


def _fix(title: str, steps: tuple[str, ...], risk: Risk, who: Who, verify: str) -> Fix:
    steps = tuple(part for step in steps if step for part in at_its_host(step))
    verify = "; ".join(at_its_host(verify)) if verify else ""
    return Fix(title, steps, risk=risk, who=who, verify=verify)
