"""Time limit, the warning before it, and what the job's exit codes lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Check, Edit, Edits, Finding
from trainprobe.sbatch.plan import Plan

TIME, SIGNAL, CODES = CHECKS = Check("plan.time"), Check("plan.signal"), Check("plan.exitcodes")
_ENDING = ("USR1", "USR2", "HUP", "ALRM", "TERM", "INT", "10", "12", "1", "14", "15", "2")
LEAST_LEAD_S = 60  # sbatch(1): the signal may come up to 60 seconds earlier than requested
_INTERVAL = re.compile(
    r"(?:--?)?(?:[a-z]+[._-])*(?:ckpt|checkpoint|save)\w*?[_-]"
    r"(minutes|mins|min|hours|secs|seconds|sec)",
    re.IGNORECASE,
)
_HOURS = (12, 24, 36, 48, 72, 96)
"""Numbers of hours that are rare as minutes."""
_MINUTES = {"m": 1.0, "h": 60.0, "s": 1 / 60}


def check(plan: Plan) -> Iterator[Finding]:
    yield _time(plan)
    yield from _signal(plan)
    wrong = [*_requeue(plan), *_ready_codes(plan)]
    codes = ", ".join(map(str, sorted(_requeue_codes(plan))))
    says = f"RequeueExit of the site: {codes}" if codes else "No exit code leads to a requeue"
    yield from wrong or [CODES.ok(says)]


def _time(plan: Plan) -> Finding:
    value, partition, line = plan.option("time"), plan.partition, plan.line_of("time")
    name = partition.name if partition else "the partition"
    if value is None:
        default = partition.default_time if partition else None
        if default is None or default > 60:
            return TIME.ok("No --time: the default of the partition applies")
        says = f"No --time: {name} ends the job after {default:.0f} minutes by default"
        return TIME.warn(says, "#SBATCH --time=…", 0, f"{default:.0f}")
    limit = numbers.minutes(value)
    if limit is None:
        says = f"--time={value[:40]} is not a time that sbatch reads"
        return TIME.fail(says, "minutes, HH:MM:SS or D-HH:MM:SS", line, value)
    most = partition.max_time if partition else None
    if most is not None and limit > most:
        says = f"--time={value} would never start: {name} allows {_span(most)}"
        right = _slurm_time(most)
        return TIME.fail(says, f"--time={right}", line, value, plan.setting("time", right))
    interval = _checkpoint_interval(plan)
    if interval is not None and interval >= limit:
        says = (
            f"A checkpoint is saved every {_span(interval)}, and the job ends after {_span(limit)}:"
            " nothing would ever be saved"
        )
        return TIME.fail(says, "save more often, or raise --time", line, value)
    if finding := _unit(plan, value, limit, line):
        return finding
    allowed = ", which the partition allows" if most is not None else ""
    return TIME.ok(f"{_span(limit)}{allowed}", value)


def _unit(plan: Plan, value: str, limit: float, line: int) -> Finding | None:
    """`48` is minutes and `24:00` is minutes and seconds (sbatch(1), --time), where hours may be
    meant.
    """
    match = re.fullmatch(r"(\d{1,3})(:00)?", value.strip())
    if not match or int(match[1]) not in _HOURS:
        return None
    hours = int(match[1])
    right = f"{hours}:00:00"
    says = f"--time={value} is {_span(limit)}, not hours"
    comment = plan.script.line(line).partition("#SBATCH")[2].partition("#")[2]
    if re.search(r"\b(?:hours?|hrs?|h|days?)\b", comment, re.IGNORECASE):
        edits = plan.setting("time", right)
        return TIME.fail(f"{says}, as its comment says", f"--time={right}", line, value, edits)
    big = plan.job.nodes > 1 or (plan.job.gpus or 0) > 1
    made = TIME.likely if big and hours >= 24 else TIME.warn
    return made(says, f"--time={right} for {hours} hours", line, value)


def _checkpoint_interval(plan: Plan) -> float | None:
    """Minutes between two checkpoints, where an argument of the training gives them as a time."""
    for launch in plan.launches:
        for name, value in launch.named_values:
            match, number = _INTERVAL.fullmatch(name), numbers.whole(value)
            if match and number is not None:
                return number * _MINUTES[match[1][0].lower()]
    return None


def _span(minutes: float) -> str:
    if minutes == float("inf"):
        return "no limit"
    return f"{minutes:.3g} min" if minutes < 120 else f"{minutes / 60:.3g} h"


def _slurm_time(minutes: float) -> str:
    days, rest = divmod(int(minutes), 1440)
    return (f"{days}-" if days else "") + f"{rest // 60:02d}:{rest % 60:02d}:00"


def _traps(plan: Plan) -> dict[str, int]:
    """The lines of the traps of signals in the batch shell, by signal; not those of EXIT and the
    like.
    """
    traps: dict[str, int] = {}
    for run in plan.script.commands:
        if run.words[0] == "trap" and run.step is None and len(run.words) > 2:
            signals = (word.upper().removeprefix("SIG") for word in run.words[2:])
            traps |= dict.fromkeys(signals, run.line)
    return {name: line for name, line in traps.items() if name not in ("EXIT", "ERR", "DEBUG", "0")}


def _signal(plan: Plan) -> Iterator[Finding]:
    value, traps, line = plan.option("signal"), _traps(plan), plan.line_of("signal")
    if value is None:
        trapped = next((name for name in traps if name in ("USR1", "USR2", "10", "12")), "")
        if not trapped:
            yield SIGNAL.skip("No --signal: the job ends at its time limit without a warning")
            return
        at, right = traps[trapped], f"B:{trapped}@120"
        says = f"The script traps {trapped} (line {at}), but without --signal SLURM never sends it"
        edits = plan.setting("signal", right)
        yield SIGNAL.fail(says, f"#SBATCH --signal={right}", at, "", edits)
        return
    pattern = r"(?:([RB]+):)?(?:SIG)?([A-Za-z]+\d?|\d{1,2})(?:@(\d{1,5}))?"
    match = re.fullmatch(pattern, value.strip())
    if not match:
        says = f"--signal={value[:40]} is not a signal that sbatch reads"
        yield SIGNAL.fail(says, "--signal=B:USR1@120", line, value)
        return
    name, lead = match[2].upper(), int(match[3] or 60)
    to_batch = "B" in (match[1] or "")
    wrong = [*_lead(plan, value, lead), *_receiver(plan, value, name, traps, to_batch=to_batch)]
    yield from wrong or [SIGNAL.ok(f"{name} comes {lead} s before the time limit", value)]


def _lead(plan: Plan, value: str, lead: int) -> Iterator[Finding]:
    limit, line = numbers.minutes(plan.option("time") or ""), plan.line_of("signal")
    kill_wait = numbers.whole(re.sub(r"\D.*", "", plan.site.config.get("KillWait", ""))) or 30
    signal = value.strip().partition("@")[0]
    if limit is not None and lead >= limit * 60:
        says = f"--signal={value} sends the signal at the start of a job of {_span(limit)}"
        edits = plan.setting("signal", f"{signal}@120")
        yield SIGNAL.fail(says, "a lead that is shorter than the time limit", line, value, edits)
    elif lead < max(LEAST_LEAD_S, kill_wait):
        says = (
            f"--signal={value} leaves {lead} s to save a checkpoint; SLURM may send it a minute"
            f" late, and kills the job within KillWait ({kill_wait} s) after the limit"
        )
        right = f"{signal}@300"
        yield SIGNAL.fail(says, f"--signal={right}", line, value, plan.setting("signal", right))


def _receiver(
    plan: Plan, value: str, name: str, traps: dict[str, int], *, to_batch: bool
) -> Iterator[Finding]:
    """Who gets the signal, and whether it can act on it."""
    line, trap = plan.line_of("signal"), traps.get(name)
    if trap is not None and not to_batch:
        says = (
            f"The script traps {name} (line {trap}), but --signal={value} goes to the steps only:"
            " the trap never runs"
        )
        edits = plan.setting("signal", f"B:{value}")
        yield SIGNAL.fail(says, f"--signal=B:{value}", line, value, edits)
    elif to_batch and trap is None:
        if not any(run.words[0] == "exec" and run.step is None for run in plan.script.commands):
            says = (
                f"--signal={value} goes to the batch shell only, which does not trap {name}: the"
                " signal ends the shell and with it the job"
            )
            plain = value.partition(":")[2]
            fix = f"trap it there, or send it to the steps: --signal={plain}"
            yield SIGNAL.fail(says, fix, line, value, plan.setting("signal", plain))
    elif trap is None and plan.launches and not _starts_steps(plan):
        says = (
            f"--signal={value} goes to the steps only, and the script starts none: {name} reaches"
            f" no process, also not {plan.launches[0].place}"
        )
        fix = f"srun in front of the launch, or --signal=B:{value} with exec in front of it"
        one_task = plan.job.all_tasks == 1 and len(plan.launches) == 1
        edits = plan.prefixed(plan.launches[0], "srun") if one_task else ()
        yield SIGNAL.fail(says, fix, line, value, edits)
    elif trap is None:
        yield from _unhandled(plan, value, name)
    else:
        foreground = [
            launch
            for launch in plan.launches
            if not launch.run.command.nested
            and launch.run.command.after != "&"
            and (launch.step is None or launch.step.command.after != "&")
        ]
        if foreground:
            command = foreground[0].run.command
            says = (
                f"The shell runs the trap for {name} (line {trap}) only after the command of line"
                f" {command.line} has ended, since it waits for it in the foreground"
            )
            fix, edits = (
                "end the launch with &, and add wait below",
                _background(plan, command.last),
            )
            yield SIGNAL.fail(says, fix, command.line, value, edits)


def _starts_steps(plan: Plan) -> bool:
    """Whether the script may start a step: by srun, by what calls it, or in a file not read."""
    return (
        any(run.step is not None and run.step.program != "ssh" for run in plan.script.commands)
        or bool(re.search(r"(?m)^[^#\n]*\bsrun\b", plan.script.text))
        or any(launch.program == "deepspeed" or launch.open for launch in plan.launches)
        or any(plan.about(launch).get("submits") for launch in plan.launches)
        or any(name not in plan.login.files for name, _ in plan.script.called)
    )


def _unhandled(plan: Plan, value: str, name: str) -> Iterator[Finding]:
    """A signal to the steps that ends their processes, since their programs do not handle it."""
    read = [launch for launch in plan.launches if plan.about(launch).get("signals") is False]
    if not read or name not in _ENDING:
        return
    script = read[0].script.rpartition("/")[2]
    says = (
        f"--signal={value} sends {name} to the ranks, and {script} does not handle it: it ends them"
        " at once, without a checkpoint"
    )
    fix = f"signal.signal(signal.SIG{name}, …) in {script}, which saves a checkpoint"
    yield SIGNAL.likely(says, fix, plan.line_of("signal"), value)


def _background(plan: Plan, last: int) -> Edits:
    lines = plan.script.lines
    while last < len(lines) and lines[last - 1].rstrip().endswith("\\"):
        last += 1
    line = plan.script.line(last).rstrip()
    if not line or line.endswith(("\\", ";", "|")):
        return ()
    return (Edit(last, "append", " &"), Edit(last + 1, "insert", "wait"))


def _requeue(plan: Plan) -> Iterator[Finding]:
    """Whether requeues are allowed, and whether output survives them."""
    commands = plan.script.commands
    calls = [run.line for run in commands if run.words[:2] == ("scontrol", "requeue")]
    if calls and "no-requeue" in plan.options:
        line, right = plan.line_of("no-requeue"), "#SBATCH --requeue"
        says = f"--no-requeue forbids the requeue of line {calls[0]}"
        edits: Edits = (Edit(line, "replace", right),) if line else ()
        yield CODES.fail(says, right, line, "--no-requeue", edits)
    appends = "open-mode" in plan.options or plan.site.config.get("JobFileAppend", "0") == "1"
    if (calls or "requeue" in plan.options) and not appends:
        says = "A requeued job overwrites its output file: the log of the run before is lost"
        line = plan.line_of("requeue") or (calls[0] if calls else 0)
        edits = plan.setting("open-mode", "append")
        yield CODES.warn(says, "#SBATCH --open-mode=append", line, "", edits)


def _ready_codes(plan: Plan) -> Iterator[Finding]:
    codes = ", ".join(str(code) for code in sorted(_requeue_codes(plan) & {1, 3}))
    for run in plan.script.commands:
        if codes and "trainprobe" in run.words[0] and "ready" in run.words[1:2]:
            says = (
                f"The site requeues jobs that end with {codes} (RequeueExit), but trainprobe ready"
                f" (line {run.line}) ends with 1 where you must fix something and with 3 where it"
                " could not look"
            )
            fix = "map the codes in the script: only 10 names nodes to exclude"
            yield CODES.fail(says, fix, run.line, codes)
            return


def _requeue_codes(plan: Plan) -> set[int]:
    codes: set[int] = set()
    for setting in ("RequeueExit", "RequeueExitHold"):
        for part in plan.site.setting(setting).split(","):
            low, _, high = part.strip().partition("-")
            first, last = numbers.whole(low), numbers.whole(high or low)
            if first is not None and last is not None and first <= last <= 255:
                codes |= set(range(first, last + 1))
    return codes
