"""What must stand on the login node before the job is submitted: limits that SLURM copies from
it, paths, and folders for output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch.findings import Finding
from trainprobe.sbatch.plan import Plan, found

LIMITS, OUTPUT = "plan.limits", "plan.output"
OPEN_FILES, FEW_FILES = 65536, 1025
_SHORT = {
    "n": "nofile",
    "l": "memlock",
    "v": "as",
    "u": "nproc",
    "t": "cpu",
    "f": "fsize",
    "d": "data",
}
_UNIQUE = re.compile(r"%\d*[jAaJsNntu]|%x.*%\d*[jAa]")


def check(plan: Plan) -> Iterator[Finding]:
    yield from _limits(plan)
    yield from _output(plan)


def _propagates(plan: Plan, name: str) -> bool:
    """Whether SLURM copies this soft limit from where sbatch runs (slurm.conf,
    PropagateResourceLimits; sbatch --propagate).
    """
    given = plan.options.get("propagate")
    if given is not None:
        chosen = given.value.upper().split(",")
        return "NONE" not in chosen and (
            not given.value or "ALL" in chosen or name.upper() in chosen
        )
    config = plan.site.config
    only, without = (
        config.get(key, "").upper().replace("(NULL)", "")
        for key in ("PropagateResourceLimits", "PropagateResourceLimitsExcept")
    )
    if without and without != "NONE":
        return "ALL" not in without.split(",") and name.upper() not in without.split(",")
    return only in ("", "ALL") or name.upper() in only.split(",")


def _set_in_script(plan: Plan) -> dict[str, str]:
    """Limits that the script sets itself, by name."""
    set_: dict[str, str] = {}
    for done in plan.script.commands:
        if done.words[0] == "ulimit":
            letters = (
                "".join(word[1:] for word in done.words[1:] if word.startswith("-"))
                .replace("H", "")
                .replace("S", "")
            )
            value = next((word for word in done.words[1:] if not word.startswith("-")), "")
            for letter in letters or "f":
                set_[_SHORT.get(letter, letter)] = value
    return set_


def _limits(plan: Plan) -> Iterator[Finding]:
    limits = plan.here.limits
    if not limits:
        yield found(
            LIMITS,
            "unknown",
            "The limits of this host, which SLURM copies to the job, could not be read",
        )
        return
    own = _set_in_script(plan)
    wrong = list(_bad_limits(plan, own))
    yield from wrong
    if not wrong:
        soft = limits.get("nofile", (None, None))[0]
        how = (
            "the script sets its own"
            if "nofile" in own
            else (
                "SLURM copies no such limit at this site"
                if not _propagates(plan, "nofile")
                else "SLURM copies it to the job"
            )
        )
        yield found(
            LIMITS,
            "ok",
            f"Open files: {'unlimited' if soft is None else soft} here; {how}",
            value=str(soft or "unlimited"),
        )


def _bad_limits(plan: Plan, own: dict[str, str]) -> Iterator[Finding]:
    limits = plan.here.limits
    soft, hard = limits.get("nofile", (None, None))
    if (
        soft is not None
        and soft < OPEN_FILES
        and "nofile" not in own
        and _propagates(plan, "nofile")
    ):
        many = plan.world > 32 or plan.job.nodes >= 4
        bad = (soft < FEW_FILES and many) or soft <= 256
        if soft < FEW_FILES:
            right = min(hard or OPEN_FILES, OPEN_FILES)
            says = (
                f"Open files are limited to {soft} on this host, and SLURM copies that to every"
                " task" + (f": too few for {plan.world} ranks" if many else "")
            )
            fix = f"ulimit -n {right} in the script above the launch"
            yield found(
                LIMITS,
                "fail" if bad else "warn",
                says,
                fix,
                0,
                str(soft),
                plan.before_launches(f"ulimit -n {right}") if right > soft else (),
            )
    for name, text, least in (
        ("as", "address space (ulimit -v)", 256 * 2**30),
        ("cpu", "CPU time (ulimit -t)", 30 * 86400),
        ("nproc", "processes (ulimit -u)", 1024),
        ("data", "data segment (ulimit -d)", 256 * 2**30),
    ):
        value = limits.get(name, (None, None))[0]
        if value is None or value >= least or name in own or not _propagates(plan, name):
            continue
        letter = next(key for key, full in _SHORT.items() if full == name)
        says = (
            f"The limit of {text} is {value:,}"
            f" {'seconds' if name == 'cpu' else 'bytes' if name != 'nproc' else ''} on this host,"
            " and SLURM copies it to every task".replace("  ", " ")
        )
        top = limits[name][1]
        edits = (
            plan.before_launches(f"ulimit -{letter} {top if top is not None else 'unlimited'}")
            if top is None or top > value
            else ()
        )
        yield found(
            LIMITS,
            "fail",
            says,
            f"sbatch --propagate=NONE, or ulimit -{letter} unlimited before sbatch",
            0,
            str(value),
            edits,
        )
    locked = limits.get("memlock", (None, None))[0]
    if (
        locked is not None
        and locked < 2**30
        and plan.job.nodes > 1
        and plan.job.gpus
        and "memlock" not in own
        and _propagates(plan, "memlock")
    ):
        says = (
            f"Locked memory is limited to {locked // 1024:,} kB on this host, and SLURM copies"
            " that: InfiniBand cannot register its buffers"
        )
        yield found(
            LIMITS,
            "warn",
            says,
            "sbatch --propagate=NONE; at the site PropagateResourceLimitsExcept=MEMLOCK",
            0,
            str(locked),
        )


def _output(plan: Plan) -> Iterator[Finding]:
    options, array = plan.options, "array" in plan.options
    wrong = []
    for name in ("output", "error"):
        option = options.get(name)
        if option is None or option.value in ("/dev/null", "none"):
            continue
        base = option.value.rpartition("/")[2]
        own_of_task = re.search(r"%\d*[ajJ]", option.value)
        right = _unique(option.value, array=array)
        if array and not own_of_task:
            says = (
                f"--{name}={option.value} ({option.where}) is one file for all tasks of the array:"
                " they overwrite each other"
            )
            wrong.append(
                found(
                    OUTPUT,
                    "fail",
                    says,
                    f"--{name}={right}",
                    max(0, option.line),
                    option.value,
                    plan.setting(name, right),
                )
            )
        elif not array and not _UNIQUE.search(base) and not _UNIQUE.search(option.value):
            says = (
                f"--{name}={option.value} ({option.where}) is the same file for each job: the next"
                " one overwrites it"
            )
            wrong.append(
                found(
                    OUTPUT,
                    "warn",
                    says,
                    f"--{name}={right}",
                    max(0, option.line),
                    option.value,
                    plan.setting(name, right),
                )
            )
    yield from wrong
    if not wrong:
        yield found(
            OUTPUT,
            "ok",
            f"Output goes to {options['output'].value if 'output' in options else 'slurm-%j.out'},"
            " a file for each job",
        )


def _unique(path: str, *, array: bool) -> str:
    stem, dot, ending = path.rpartition(".")
    mark = "%A_%a" if array else "%j"
    stem = re.sub(r"[-_.]?%A", "", stem) if array else stem
    return f"{stem}-{mark}.{ending}" if dot and "/" not in ending else f"{path}-{mark}"
