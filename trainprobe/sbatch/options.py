"""Options of sbatch and srun, as getopt_long reads them: long names may be shortened, values stand
behind `=`, a blank, or the letter itself.

Names after sbatch(1) and srun(1) of SLURM 22.05 to 24.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_LETTERS = {
    "A": "account",
    "B": "extra-node-info",
    "C": "constraint",
    "D": "chdir",
    "F": "nodefile",
    "G": "gpus",
    "J": "job-name",
    "L": "licenses",
    "M": "clusters",
    "N": "nodes",
    "S": "core-spec",
    "a": "array",
    "b": "begin",
    "c": "cpus-per-task",
    "d": "dependency",
    "e": "error",
    "i": "input",
    "m": "distribution",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
    "r": "relative",
    "T": "threads",
}
_BARE_LETTERS = {
    "H": "hold",
    "O": "overcommit",
    "Q": "quiet",
    "V": "version",
    "h": "help",
    "s": "oversubscribe",
    "v": "verbose",
    "l": "label",
    "u": "unbuffered",
    "E": "preserve-env",
    "X": "disable-status",
    "Z": "no-allocate",
}
_VALUED = set(_LETTERS.values()) | {
    "acctg-freq",
    "batch",
    "bb",
    "bbf",
    "cluster-constraint",
    "comment",
    "container",
    "container-id",
    "cores-per-socket",
    "cpu-freq",
    "cpus-per-gpu",
    "deadline",
    "delay-boot",
    "export",
    "export-file",
    "extra",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "hint",
    "kill-on-invalid-dep",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "network",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "open-mode",
    "power",
    "prefer",
    "priority",
    "profile",
    "reservation",
    "resources",
    "segment",
    "signal",
    "sockets-per-node",
    "switches",
    "thread-spec",
    "threads-per-core",
    "time-min",
    "tmp",
    "uid",
    "wait-all-nodes",
    "wckey",
    "wrap",
    "tres-bind",
    "tres-per-task",
    "container-image",
    "container-mounts",
    "container-name",
    "container-workdir",
    "container-env",
    "container-writable",
    "consolidate-segments",
    "oom-kill-step",
}
_MAY = {
    "exclusive",
    "get-user-env",
    "nice",
    "propagate",
    "no-kill",
    "ignore-pbs",
    "wait",
    "immediate",
    "kill-on-bad-exit",
    "resv-ports",
    "bcast",
    "compress",
}
_MAY |= {"send-libs", "x11", "spread-job", "container-mount-home", "container-remap-root"}
_BARE = set(_BARE_LETTERS.values()) | {
    "contiguous",
    "parsable",
    "reboot",
    "requeue",
    "no-requeue",
    "test-only",
    "use-min-nodes",
    "usage",
    "hetjob",
    "packjob",
    "stepmgr",
    "no-bell",
    "no-shell",
    "exact",
    "overlap",
    "pty",
    "quit-on-interrupt",
    "multi-prog",
    "preserve-env",
    "whole",
    "no-container-mount-home",
    "no-container-remap-root",
}
_STEP_VALUED = {
    "accel-bind",
    "bcast-exclude",
    "cpu-bind",
    "epilog",
    "prolog",
    "het-group",
    "pack-group",
    "jobid",
    "mpi",
    "msg-timeout",
    "slurmd-debug",
}
_STEP_VALUED |= {"task-epilog", "task-prolog", "treewidth"}
_MAY_LETTERS = {"k": "no-kill", "I": "immediate", "K": "kill-on-bad-exit"}
_OF_STEP_ONLY = _STEP_VALUED | {
    "relative",
    "threads",
    "immediate",
    "kill-on-bad-exit",
    "resv-ports",
    "bcast",
    "compress",
    "send-libs",
    "x11",
    "exact",
    "overlap",
}
_OF_STEP_ONLY |= {
    "pty",
    "quit-on-interrupt",
    "multi-prog",
    "label",
    "unbuffered",
    "preserve-env",
    "disable-status",
    "no-allocate",
}
LONG = _VALUED | _MAY | _BARE | _STEP_VALUED


@dataclass(frozen=True)
class Option:
    """One option given. `line` is that of the script, 0 for the command line, -1 for the
    environment; `where` names it in words.
    """

    name: str
    value: str
    line: int = 0
    where: str = ""
    spelled: str = ""


@dataclass(frozen=True)
class Given:
    """What a list of words held: its options, what came after them, and what is no option, each
    as a sentence.
    """

    options: tuple[Option, ...]
    rest: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()


def options_of(
    words: Sequence[str], *, step: bool = False, line: int = 0, where: str = ""
) -> Given:
    """Read the options at the front of `words`, up to the first word that is none. `step` takes
    those of srun.
    """
    found: list[Option] = []
    flaws: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        following = words[at] if at < len(words) else None
        if word.startswith("--"):
            option, flaw, used = _long(word[2:], following, step=step)
        else:
            option, flaw, used = _short(word[1:], following, step=step)
        at += used
        if flaw:
            flaws.append(flaw)
        found += [Option(name, value, line, where, word) for name, value in option]
    return Given(tuple(found), tuple(words[at:]), tuple(flaws))


def _long(
    text: str, following: str | None, *, step: bool
) -> tuple[list[tuple[str, str]], str, int]:
    name, has_value, value = text.partition("=")
    known = _known(name, step=step)
    if known is None:
        return [], f"--{name[:60]} is no option of {'srun' if step else 'sbatch'}", 0
    if known in _BARE:
        return [(known, "")], f"--{known} takes no value" if has_value else "", 0
    if has_value or known in _MAY:
        return (
            [(known, value)],
            "" if value or not has_value or known in _MAY else f"--{known} has no value",
            0,
        )
    if following is None:
        return [(known, "")], f"--{known} has no value", 0
    return [(known, following)], "", 1


def _known(name: str, *, step: bool) -> str | None:
    allowed = LONG if step else LONG - _OF_STEP_ONLY
    if name in allowed:
        return name
    begun = [one for one in allowed if name and one.startswith(name)]
    return begun[0] if len(begun) == 1 else None


def _short(
    letters: str, following: str | None, *, step: bool
) -> tuple[list[tuple[str, str]], str, int]:
    found: list[tuple[str, str]] = []
    who = "srun" if step else "sbatch"
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter == "W":
            return (
                [*found, ("wait", letters or following or "" if step else "")],
                "",
                int(step and not letters),
            )
        if letter in _MAY_LETTERS:
            return [*found, (_MAY_LETTERS[letter], letters)], "", 0
        if letter in _BARE_LETTERS:
            found.append((_BARE_LETTERS[letter], ""))
        elif letter in _LETTERS:
            if letters:
                return (
                    [*found, (_LETTERS[letter], letters.removeprefix("="))],
                    (
                        ""
                        if letters[0] != "="
                        else f"-{letter}= is read as a value that begins with ="
                    ),
                    0,
                )
            return (
                [*found, (_LETTERS[letter], following or "")],
                "" if following is not None else f"-{letter} has no value",
                1,
            )
        else:
            return found, f"-{letter} is no option of {who}", 0
    return found, "", 0


# sbatch(1), INPUT ENVIRONMENT VARIABLES: they stand above the script and below the command line.
OF_ENVIRONMENT = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_CONSTRAINT": "constraint",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu",
    "SBATCH_ERROR": "error",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_EXPORT": "export",
    "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GPUS_PER_TASK": "gpus-per-task",
    "SBATCH_GRES": "gres",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_MEM_PER_CPU": "mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NO_REQUEUE": "no-requeue",
    "SBATCH_OPEN_MODE": "open-mode",
    "SBATCH_OUTPUT": "output",
    "SBATCH_PARTITION": "partition",
    "SBATCH_QOS": "qos",
    "SBATCH_REQUEUE": "requeue",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_SIGNAL": "signal",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_OVERCOMMIT": "overcommit",
}
