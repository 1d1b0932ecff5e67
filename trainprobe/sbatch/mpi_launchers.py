"""Commands that start tasks on the nodes of a job, other than srun: mpirun, mpiexec, jsrun, aprun,
blaunch, ssh. Their options get the names that srun has for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.sbatch import numbers
from trainprobe.sbatch.options import Option

PROGRAMS = (
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
    "prterun",
    "jsrun",
    "aprun",
    "ibrun",
    "pbsdsh",
    "blaunch",
)
# mpirun(1) of Open MPI, mpiexec of MPICH, Intel MPI and PALS, jsrun(1), aprun(1).
_NAMES = {
    **dict.fromkeys(("n", "np"), "ntasks"),
    **dict.fromkeys(("ppn", "npernode", "N", "perhost"), "ntasks-per-node"),
}
_VALUED = set(
    """
    x map-by bind-to rank-by hostfile machinefile f host H hosts wdir wd d depth cpu-bind
    mem-bind genvlist envlist report-bindings-to output-filename display path prefix iface
    a c g r b l E tasks_per_rs cpu_per_rs gpu_per_rs rs_per_host nrs bind launch_distribution
    launcher bootstrap rmk cc e z u
    """.split()
)
_TWO_VALUES = ("mca", "gmca", "genv", "env", "prtemca")


_SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"
_SSH_WITHOUT_COMMAND = "NGVQOsW"


def remote_words(words: Sequence[str]) -> tuple[str, ...] | None:
    """The words that `ssh HOST …` hands to the shell of the host, () where it would open a shell
    there; None where it runs no command at all, as a tunnel does: ssh(1).
    """
    at = 1
    while at < len(words) and words[at].startswith("-"):
        switches, at = words[at][1:], at + 1
        for place, letter in enumerate(switches, start=1):
            if letter in _SSH_WITHOUT_COMMAND:
                return None
            if letter in _SSH_VALUED:
                at += place == len(switches)
                break
    return tuple(words[at + 1 :]) if at < len(words) else None


def step_options(words: Sequence[str], line: int) -> tuple[dict[str, Option], tuple[str, ...]]:
    """The options of such a command by srun's names, and the words that it starts."""
    program = words[0].rpartition("/")[2]
    given, at = _given(words)
    found = {_NAMES[name]: value for name, value in given.items() if name in _NAMES}
    mapped = given.get("map-by", "").split(":")
    if mapped[0] == "ppr" and "node" in mapped:
        found["ntasks-per-node"] = mapped[1]
    if program == "jsrun":
        found = _jsrun(given)
    elif program == "blaunch" or (program == "pbsdsh" and "u" in given):
        found["ntasks-per-node"] = "1"
    tasks = numbers.whole(found.get("ntasks", ""))
    each = numbers.whole(found.get("ntasks-per-node", ""))
    if tasks is not None and each:
        found["nodes"] = str(-(-tasks // each))
    where = f"{program} in line {line}"
    options = {name: Option(name, value, line, where) for name, value in found.items()}
    return options, tuple(words[at:])


def _given(words: Sequence[str]) -> tuple[dict[str, str], int]:
    """The options as written, and the place of the first word behind them."""
    given: dict[str, str] = {}
    at = 1
    while at < len(words) and words[at].startswith("-"):
        name, has_value, value = words[at].lstrip("-").partition("=")
        at += 1
        if not name:
            break
        if not has_value and name in _TWO_VALUES:
            at += 2
        elif not has_value and (name in _NAMES or name in _VALUED):
            value = words[at] if at < len(words) else ""
            at += not (words[0].endswith("pbsdsh") and name == "u")
        given[name] = value
    return given, at


def _jsrun(given: dict[str, str]) -> dict[str, str]:
    """Tasks of resource sets, jsrun(1)."""
    counts = {
        key: number
        for name, value in given.items()
        if (key := _JSRUN.get(name)) and (number := numbers.whole(value)) is not None
    }
    each = counts.get("tasks", 1)
    unbound = "none" in (given.get("b"), given.get("bind"))
    bound = "cores" in counts and not unbound
    found = {"cpus-per-task": str(max(1, counts["cores"] // max(1, each)))} if bound else {}
    found |= {"ntasks": str(counts["sets"] * each)} if "sets" in counts else {}
    if "on host" in counts:
        found["ntasks-per-node"] = str(counts["on host"] * each)
    return found


_JSRUN = {
    "n": "sets",
    "nrs": "sets",
    "a": "tasks",
    "tasks_per_rs": "tasks",
    "r": "on host",
    "rs_per_host": "on host",
    "c": "cores",
    "cpu_per_rs": "cores",
}
