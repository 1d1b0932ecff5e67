"""Time limit, the warning before it, and what becomes of the job's exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Edit, Finding
from trainprobe.sbatch.plan import Plan, found, skipped

TIME, SIGNAL, CODES = "plan.time", "plan.signal", "plan.exitcodes"
LEAST_LEAD_S = 60  # sbatch(1): the signal may come up to 60 seconds earlier than asked for
_INTERVAL = re.compile(
    r"--?(?:[a-z]+[._-])*(?:ckpt|checkpoint|save)\w*?[_-](minutes|mins|min|hours|secs|seconds|sec)",
    re.IGNORECASE,
)
_UNIT = {"m": 1.0, "h": 60.0, "s": 1 / 60}


def check(plan: Plan) -> Iterator[Finding]:
    yield _time(plan)
    yield from _signal(plan)
    yield from _codes(plan)


def _time(plan: Plan) -> Finding:
    given, partition = plan.given("time"), plan.partition
    line = plan.line_of("time")
    if given is None:
        default = partition.default_time if partition else None
        if default is not None and default <= 60:
            says = (
                f"No --time: the job ends after the {default:.0f} minutes that"
                f" {partition.name if partition else 'the partition'} gives by default"
            )
            return found(TIME, "warn", says, "#SBATCH --time=…", 0, f"{default:.0f}")
        return found(TIME, "ok", "No --time: the default of the partition holds")
    limit = numbers.minutes(given)
    if limit is None:
        return found(
            TIME,
            "fail",
            f"--time={given[:40]} is no time that sbatch reads",
            "minutes, HH:MM:SS or D-HH:MM:SS",
            line,
            given,
        )
    most = partition.max_time if partition else None
    if most is not None and limit > most:
        says = (
            f"--time={given} is more than {partition.name if partition else 'the partition'} allows"
            f" ({_span(most)}): the job would never start"
        )
        return found(
            TIME,
            "fail",
            says,
            f"--time={_slurm_time(most)}",
            line,
            given,
            plan.setting("time", _slurm_time(most)),
        )
    interval = _interval(plan)
    if interval is not None and interval >= limit:
        says = (
            f"A checkpoint is saved every {_span(interval)}, and the job ends after {_span(limit)}:"
            " nothing would ever be saved"
        )
        return found(
            TIME, "fail", says, "save more often than the time limit, or raise --time", line, given
        )
    return found(
        TIME,
        "ok",
        f"{_span(limit)}, which the partition allows" if most is not None else _span(limit),
        value=given,
    )


def _interval(plan: Plan) -> float | None:
    """Minutes between two checkpoints, where an argument of the training says it in units of
    time.
    """
    for launch in plan.launches:
        words = launch.arguments
        for place, word in enumerate(words):
            name, has_value, value = word.partition("=")
            told = _INTERVAL.fullmatch(name if name.startswith("-") else f"--{name}")
            number = (
                numbers.whole(
                    value if has_value else words[place + 1] if place + 1 < len(words) else ""
                )
                if told
                else None
            )
            if told and number is not None:
                return number * _UNIT[told[1][0].lower()]
    return None


def _span(minutes: float) -> str:
    if minutes == float("inf"):
        return "no limit"
    return f"{minutes:.3g} min" if minutes < 120 else f"{minutes / 60:.3g} h"


def _slurm_time(minutes: float) -> str:
    total = int(minutes)
    days, rest = divmod(total, 1440)
    return (f"{days}-" if days else "") + f"{rest // 60:02d}:{rest % 60:02d}:00"


def _traps(plan: Plan) -> dict[str, int]:
    """Signals that the batch shell traps, with the line. A trap of EXIT and the like is none."""
    found_: dict[str, int] = {}
    for done in plan.script.commands:
        if done.words[0] == "trap" and not done.task and len(done.words) > 2:
            found_ |= {
                word.upper().removeprefix("SIG"): done.line
                for word in done.words[2:]
                if word.upper().removeprefix("SIG") not in ("EXIT", "ERR", "DEBUG", "0")
            }
    return found_


def _signal(plan: Plan) -> Iterator[Finding]:
    given, traps, line = plan.given("signal"), _traps(plan), plan.line_of("signal")
    if given is None:
        trapped = [name for name in traps if name in ("USR1", "USR2", "10", "12")]
        if trapped:
            says = (
                f"The script traps {trapped[0]} (line {traps[trapped[0]]}), and without --signal"
                " SLURM never sends it"
            )
            yield found(
                SIGNAL,
                "fail",
                says,
                f"#SBATCH --signal=B:{trapped[0]}@120",
                traps[trapped[0]],
                "",
                plan.setting("signal", f"B:{trapped[0]}@120"),
            )
        else:
            yield skipped(
                SIGNAL, "No --signal: the job is ended at its time limit without a warning"
            )
        return
    told = re.fullmatch(
        r"(?:([RB]+):)?(?:SIG)?([A-Za-z]+\d?|\d{1,2})(?:@(\d{1,5}))?", given.strip()
    )
    if not told:
        yield found(
            SIGNAL,
            "fail",
            f"--signal={given[:40]} is no signal that sbatch reads",
            "--signal=B:USR1@120",
            line,
            given,
        )
        return
    to_batch, name, lead = "B" in (told[1] or ""), told[2].upper(), int(told[3] or 60)
    limit = numbers.minutes(plan.given("time") or "")
    wrong = [
        *_lead(plan, given, lead, limit, line),
        *_receiver(plan, given, name, traps, to_batch=to_batch),
    ]
    yield from wrong
    if not wrong:
        yield found(SIGNAL, "ok", f"{name} comes {lead} s before the time limit", value=given)


def _lead(plan: Plan, given: str, lead: int, limit: float | None, line: int) -> Iterator[Finding]:
    kill_wait = numbers.whole(re.sub(r"\D.*", "", plan.site.config.get("KillWait", "")) or "") or 30
    if limit is not None and lead >= limit * 60:
        says = (
            f"--signal={given} comes {lead} s before the end of a job of {_span(limit)}: at its"
            " start"
        )
        yield found(
            SIGNAL,
            "fail",
            says,
            "a lead that is shorter than the time limit",
            line,
            given,
            plan.setting("signal", _led(given, 120)),
        )
    elif lead < max(LEAST_LEAD_S, kill_wait):
        longer = _led(given, 300)
        says = (
            f"--signal={given} gives {lead} s to save a checkpoint; SLURM counts in minutes, and"
            f" after the limit ends all within KillWait ({kill_wait} s)"
        )
        yield found(
            SIGNAL, "fail", says, f"--signal={longer}", line, given, plan.setting("signal", longer)
        )


def _led(given: str, seconds: int) -> str:
    return f"{given.strip().partition('@')[0]}@{seconds}"


def _receiver(
    plan: Plan, given: str, name: str, traps: dict[str, int], *, to_batch: bool
) -> Iterator[Finding]:
    """Who gets the signal, and whether it can act on it."""
    line = plan.line_of("signal")
    trapped = name in traps
    if trapped and not to_batch:
        says = (
            f"The script traps {name} (line {traps[name]}), and --signal={given} goes to the steps"
            " only: the trap never runs"
        )
        yield found(
            SIGNAL,
            "fail",
            says,
            f"--signal=B:{given}",
            line,
            given,
            plan.setting("signal", f"B:{given}"),
        )
    elif to_batch and not trapped:
        execs = any(done.words[0] == "exec" and not done.task for done in plan.script.commands)
        if not execs:
            says = (
                f"--signal={given} goes to the batch shell alone, which does not trap {name}:"
                f" {name} ends the shell and with it the job"
            )
            plain = given.partition(":")[2]
            yield found(
                SIGNAL,
                "fail",
                says,
                f"trap it there, or let it go to the steps: --signal={plain}",
                line,
                given,
                plan.setting("signal", plain),
            )
    elif trapped and to_batch:
        front = [
            one
            for one in plan.launches
            if one.done.after != "&"
            and (one.step is None or one.step.after != "&")
            and not one.done.nested
        ]
        if front:
            says = (
                f"The shell runs the trap for {name} (line {traps[name]}) only when the command of"
                f" line {front[0].line} has ended, since it waits for it in the foreground"
            )
            yield found(
                SIGNAL,
                "fail",
                says,
                "start the launch with & at its end, and wait below it",
                front[0].line,
                given,
                _in_background(plan, front[0].done.last),
            )


def _in_background(plan: Plan, last: int) -> tuple[Edit, ...]:
    lines = plan.script.lines
    while last < len(lines) and lines[last - 1].rstrip().endswith("\\"):
        last += 1
    line = lines[last - 1].rstrip() if last <= len(lines) else ""
    if not line or (line.endswith(("\\", ";", "|", "'", '"')) and not line.endswith(("'", '"'))):
        return ()
    return (Edit(last, "append", " &"), Edit(last + 1, "insert", "wait"))


def _codes(plan: Plan) -> Iterator[Finding]:
    """Requeues: whether they are allowed, whether output survives, and which exit codes lead to
    one.
    """
    requeues = [done for done in plan.script.commands if done.words[:2] == ("scontrol", "requeue")]
    options = plan.options
    wrong = False
    if requeues and "no-requeue" in options:
        wrong = True
        line = plan.line_of("no-requeue")
        says = f"The script requeues itself (line {requeues[0].line}), and --no-requeue forbids it"
        yield found(
            CODES,
            "fail",
            says,
            "#SBATCH --requeue",
            line,
            "--no-requeue",
            (Edit(line, "replace", "#SBATCH --requeue"),) if line else (),
        )
    if (
        (requeues or "requeue" in options)
        and options.get("open-mode") is None
        and plan.site.config.get("JobFileAppend", "0") != "1"
    ):
        wrong = True
        says = "A requeued job begins its output file anew, and the log of the run before is lost"
        yield found(
            CODES,
            "warn",
            says,
            "#SBATCH --open-mode=append",
            plan.line_of("requeue") or (requeues[0].line if requeues else 0),
            "",
            plan.setting("open-mode", "append"),
        )
    again = _codes_of(plan.site.setting("RequeueExit")) | _codes_of(
        plan.site.setting("RequeueExitHold")
    )
    ready = [
        done
        for done in plan.script.commands
        if "trainprobe" in done.words[0] and "ready" in done.words[1:2]
    ]
    if ready and again & {1, 3}:
        wrong = True
        which = ", ".join(str(code) for code in sorted(again & {1, 3}))
        says = (
            f"The site requeues jobs that end with {which} (RequeueExit), and trainprobe ready"
            f" (line {ready[0].line}) ends with 1 where you must fix something and with 3 where it"
            " could not look"
        )
        yield found(
            CODES,
            "fail",
            says,
            "map the codes in the script: only 10 names nodes to leave out",
            ready[0].line,
            which,
        )
    if not wrong:
        yield found(
            CODES,
            "ok",
            (
                f"RequeueExit of the site: {', '.join(map(str, sorted(again)))}"
                if again
                else "No exit code leads to a requeue"
            ),
        )


def _codes_of(text: str) -> set[int]:
    codes: set[int] = set()
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        first, last = numbers.whole(low), numbers.whole(high or low)
        if first is not None and last is not None and first <= last <= 255:
            codes |= set(range(first, last + 1))
    return codes
