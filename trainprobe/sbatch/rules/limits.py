"""Resource limits of the login node that SLURM copies to the job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trainprobe.sbatch.findings import Check, Finding
from trainprobe.sbatch.plan import Plan

LIMITS = Check("plan.limits")
CHECKS = (LIMITS,)
OPEN_FILES, FEW_FILES = 65536, 1025
_LETTERS = {
    "n": "nofile",
    "l": "memlock",
    "v": "as",
    "u": "nproc",
    "t": "cpu",
    "f": "fsize",
    "d": "data",
}
# The limit, its letter and its name, its unit, and the least value that a training can do with.
_LEAST = (
    ("as", "v", "address space", " bytes", 256 * 2**30),
    ("cpu", "t", "CPU time", " seconds", 30 * 86400),
    ("nproc", "u", "processes", "", 1024),
    ("data", "d", "data segment", " bytes", 256 * 2**30),
)


def check(plan: Plan) -> Iterator[Finding]:
    if not plan.login.limits:
        says = "The limits of this host, which SLURM copies to the job, could not be read"
        yield LIMITS.unknown(says)
        return
    own = _set_in_script(plan)
    copied = {
        name: pair
        for name, pair in plan.login.limits.items()
        if name not in own and _propagates(plan, name)
    }
    wrong = [*_open_files(plan, copied), *_too_low(plan, copied), *_locked_memory(plan, copied)]
    if not plan.site.known:  # whether sbatch is run here is not known
        wrong = [
            replace(one, state="warn", says=f"{one.says} if sbatch is run here") for one in wrong
        ]
    yield from wrong
    if not wrong:
        soft = plan.login.limits.get("nofile", (None, None))[0]
        if "nofile" in own:
            how = "the script sets its own"
        elif _propagates(plan, "nofile"):
            how = "SLURM copies it to the job"
        else:
            how = "SLURM does not copy this limit at this site"
        says = f"Open files: {'unlimited' if soft is None else soft} on this host; {how}"
        yield LIMITS.ok(says, str(soft or "unlimited"))


def _propagates(plan: Plan, name: str) -> bool:
    """Whether SLURM copies this soft limit from where sbatch runs (slurm.conf,
    PropagateResourceLimits; sbatch --propagate).
    """
    name = name.upper()
    option = plan.option("propagate")
    if option is not None:
        chosen = option.upper().split(",")
        return "NONE" not in chosen and (not option or "ALL" in chosen or name in chosen)
    only, without = (
        plan.site.config.get(key, "").upper().replace("(NULL)", "")
        for key in ("PropagateResourceLimits", "PropagateResourceLimitsExcept")
    )
    if without and without != "NONE":
        return not {"ALL", name} & set(without.split(","))
    return only in ("", "ALL") or name in only.split(",")


def _set_in_script(plan: Plan) -> set[str]:
    """The names of the limits that the script sets itself."""
    names: set[str] = set()
    for run in plan.script.commands:
        if run.words[0] == "ulimit":
            switches = "".join(word[1:] for word in run.words[1:] if word.startswith("-"))
            letters = re.sub("[HS]", "", switches) or "f"
            names |= {_LETTERS.get(letter, letter) for letter in letters}
    return names


_Limits = dict[str, tuple[int | None, int | None]]


def _open_files(plan: Plan, copied: _Limits) -> Iterator[Finding]:
    soft, hard = copied.get("nofile", (None, None))
    if soft is None or soft >= FEW_FILES:
        return
    many = plan.world > 32 or plan.job.nodes >= 4
    right = min(hard or OPEN_FILES, OPEN_FILES)
    says = f"This host limits open files to {soft}, and SLURM copies that to every task"
    says += f": too few for {plan.world} ranks" if many else ""
    fix = f"ulimit -n {right} in the script above the launch"
    edits = plan.before_launches(f"ulimit -n {right}") if right > soft else ()
    made = LIMITS.fail if many or soft <= 256 else LIMITS.warn
    yield made(says, fix, 0, str(soft), edits)


def _too_low(plan: Plan, copied: _Limits) -> Iterator[Finding]:
    for name, letter, text, unit, least in _LEAST:
        soft, hard = copied.get(name, (None, None))
        if soft is None or soft >= least:
            continue
        says = (
            f"This host limits {text} (ulimit -{letter}) to {soft:,}{unit}, and SLURM copies that"
            " to every task"
        )
        raised = f"ulimit -{letter} {hard if hard is not None else 'unlimited'}"
        edits = plan.before_launches(raised) if hard is None or hard > soft else ()
        fix = f"sbatch --propagate=NONE, or ulimit -{letter} unlimited before sbatch"
        yield LIMITS.fail(says, fix, 0, str(soft), edits)


def _locked_memory(plan: Plan, copied: _Limits) -> Iterator[Finding]:
    soft = copied.get("memlock", (None, None))[0]
    if soft is not None and soft < 2**30 and plan.job.nodes > 1 and plan.job.gpus:
        says = (
            f"This host limits locked memory to {soft // 1024:,} kB, and SLURM copies that:"
            " InfiniBand cannot register its buffers"
        )
        fix = "sbatch --propagate=NONE; at the site PropagateResourceLimitsExcept=MEMLOCK"
        yield LIMITS.warn(says, fix, 0, str(soft))
