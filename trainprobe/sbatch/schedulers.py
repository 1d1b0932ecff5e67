"""The batch systems whose scripts are read: SLURM, PBS and LSF. The options of PBS and LSF get the
names that sbatch has for the same thing, so that one model of nodes, tasks and GPUs holds for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainprobe.sbatch import numbers
from trainprobe.sbatch.directives import Directives, Flaw, directives, split_directive
from trainprobe.sbatch.options import Option

_Pairs = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Scheduler:
    """`submit` is the command that submits, `launcher` what starts a program on all nodes. `words`
    are patterns of a fix for SLURM with what stands for them here.
    """

    name: str
    mark: str
    submit: str
    launcher: str
    read: Callable[[str], Directives]
    words: tuple[tuple[str, str], ...] = ()

    def fix(self, text: str) -> str:
        for pattern, here in self.words:
            text = re.sub(pattern, here.replace("\\", r"\\"), text)
        return text


def scheduler_of(text: str) -> Scheduler:
    """The batch system whose directives a script has; SLURM where it has none."""
    if re.search(r"^#SBATCH\b", text, re.MULTILINE):
        return SLURM
    return next(
        (one for one in (PBS, LSF) if re.search(rf"^{one.mark}\b", text, re.MULTILINE)), SLURM
    )


def _other(
    text: str, mark: str, pairs_of: Callable[[list[str]], _Pairs], submit: str
) -> Directives:
    """Read the directives of PBS and LSF, those of PBS only above the first command."""
    options: list[Option] = []
    flaws: list[Flaw] = []
    first_command = 0
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.rstrip("\r")
        if bare.startswith(mark) and bare[len(mark) :][:1] in ("", " ", "\t"):
            if first_command and mark == PBS_MARK:
                says = (
                    f"Line {number} is below the first command (line {first_command}), where"
                    f" {submit} ignores options"
                )
                flaws.append(Flaw("late", number, says))
                continue
            words = split_directive(bare[len(mark) :])
            where = f"line {number}"
            options += [
                Option(name, value, number, where, words[0])
                for name, value in pairs_of(words)
                if words
            ]
        elif not first_command and bare.strip() and not bare.lstrip().startswith("#"):
            first_command = number
    if not text.strip():
        flaws.append(Flaw("empty", 1, f"The script is empty; {submit} refuses it"))
    elif "\r\n" in text:
        line_number = 1 + text[: text.index("\r\n")].count("\n")
        flaws.append(Flaw("dos", line_number, "The script has DOS line breaks"))
    return Directives((tuple(options),), tuple(flaws), first_command)


_PBS_NAMES = {"o": "output", "e": "error", "q": "partition", "N": "job-name", "J": "array"}


def _pbs(words: list[str]) -> _Pairs:
    """The options of one #PBS line, qsub(1B): -l select=N:ncpus=…, -l nodes=N:ppn=… of Torque."""
    at = 0
    while at < len(words):
        letter, value = words[at][1:2], words[at][2:]
        at += 1
        if not value and letter not in ("V", "h", "I", "z") and at < len(words):
            value, at = words[at], at + 1
        if letter == "V":
            yield "export", "ALL"
        elif letter == "l":
            for resource in value.split(","):
                yield from _pbs_resource(resource)
        elif letter in _PBS_NAMES:
            yield _PBS_NAMES[letter], value


def _pbs_resource(resource: str) -> _Pairs:
    name, _, value = resource.partition("=")
    if name == "walltime":
        seconds = numbers.whole(value)
        yield "time", f"0:{seconds}" if seconds is not None else value
    elif name in ("select", "nodes"):
        chunks = [chunk.split(":") for chunk in value.split("+")]
        counts = [numbers.whole(chunk[0]) for chunk in chunks]
        known = [count if count is not None else 1 for count in counts]
        given = [dict(_named(part) for part in chunk if "=" in part) for chunk in chunks]
        yield "nodes", str(sum(known))
        for key, option in _PBS_CHUNK.items():
            values = {part.get(key) for part in given}
            if len(values) == 1 and (one := values.pop()):
                yield option, one
        if "mpiprocs" not in given[0] and "ppn" in given[0]:
            yield "ntasks-per-node", given[0]["ppn"]
    elif name in ("ngpus", "mem"):
        yield {"ngpus": "gpus-per-node", "mem": "mem"}[name], value


_PBS_CHUNK = {
    "mpiprocs": "ntasks-per-node",
    "ngpus": "gpus-per-node",
    "gpus": "gpus-per-node",
    "ncpus": "mincpus",
    "mem": "mem",
}


def _named(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name, value


def _lsf(words: list[str]) -> _Pairs:
    """The options of one #BSUB line, bsub(1)."""
    at = 0
    while at < len(words):
        name = words[at].lstrip("-")
        value = words[at + 1] if at + 1 < len(words) else ""
        at += 1 if name in _LSF_SWITCHES else 2
        if name == "R":
            yield from _lsf_requirement(value)
        elif name == "gpu":
            match = re.search(r"num\s*=\s*(\d+)", value)
            yield "gpus-per-node", match[1] if match else "1"
        elif name == "W":
            minutes = value.partition("/")[0]
            yield "time", f"{minutes}:00" if ":" in minutes else minutes
        elif name == "J" and "[" in value:
            yield "array", value
        elif name in _LSF_NAMES:
            yield _LSF_NAMES[name], value.partition(",")[0] if name == "n" else value


def _lsf_requirement(value: str) -> _Pairs:
    if match := re.search(r"span\[\s*ptile\s*=\s*['\"]?(\d+)", value):
        yield "ntasks-per-node", match[1]
    elif re.search(r"span\[\s*hosts\s*=\s*1\s*\]", value):
        yield "nodes", "1"
    if match := re.search(r"ngpus_excl_p\s*=\s*(\d+)", value):
        yield "gpus-per-node", match[1]


_LSF_SWITCHES = ("x", "r", "rn", "K", "I", "Is", "B", "N", "H")
_LSF_NAMES = {
    "n": "ntasks",
    "nnodes": "nodes",
    "o": "output",
    "oo": "output",
    "e": "error",
    "eo": "error",
    "q": "partition",
    "J": "job-name",
}
PBS_MARK, _LSF_MARK = "#PBS", "#BSUB"
_COMMON = ((r"\bsrun python …", "mpiexec python …"), (r"\bsrun bash", "mpiexec bash"))
SLURM = Scheduler("SLURM", "#SBATCH", "sbatch", "srun", directives)
PBS = Scheduler(
    "PBS",
    PBS_MARK,
    "qsub",
    "mpiexec",
    lambda text: _other(text, PBS_MARK, _pbs, "qsub"),
    (
        (r"\$\(scontrol show hostnames[^)]*\)", "$(head -n 1 $PBS_NODEFILE)"),
        (r"\$SLURM_JOB_NUM_NODES|\$SLURM_NNODES", "$(sort -u $PBS_NODEFILE | wc -l)"),
        (r"srun --ntasks-per-node=1 …", "mpiexec --ppn 1 …"),
        (r"--ntasks-per-node=1\b", "mpiexec --ppn 1"),
        (r"(?:#SBATCH )?--ntasks-per-node=(?:…|\d+)", "mpiprocs=… in -l select"),
        (r"\$\(\(10000 \+ SLURM_JOB_ID % 20000\)\)", "$((10000 + ${PBS_JOBID%%.*} % 20000))"),
        (r"\$?SLURM_JOB_ID", "$PBS_JOBID"),
        (r"\$SLURM_PROCID|SLURM_PROCID", "$PMI_RANK"),
        (r"\$SLURM_LOCALID", "$PMI_LOCAL_RANK"),
        (r"\$SLURM_NODEID", "the node's place in $PBS_NODEFILE"),
        (r"\$SLURM_NTASKS", "$PMI_SIZE"),
        (r"\bsbatch\b", "qsub"),
        *_COMMON,
    ),
)
LSF = Scheduler(
    "LSF",
    _LSF_MARK,
    "bsub",
    "blaunch",
    lambda text: _other(text, _LSF_MARK, _lsf, "bsub"),
    (
        (r"\$\(scontrol show hostnames[^)]*\)", "the first host of $LSB_MCPU_HOSTS"),
        (r"\$SLURM_JOB_NUM_NODES|\$SLURM_NNODES", "the number of hosts"),
        (r"srun --ntasks-per-node=1 …", 'blaunch -z "$HOSTS" …'),
        (r"(?:#SBATCH )?--ntasks-per-node=(?:…|\d+)", 'one task on each host, -R "span[ptile=…]"'),
        (r"\$\(\(10000 \+ SLURM_JOB_ID % 20000\)\)", "$((10000 + LSB_JOBID % 20000))"),
        (r"\$?SLURM_JOB_ID", "$LSB_JOBID"),
        (r"\$SLURM_PROCID|SLURM_PROCID", "$OMPI_COMM_WORLD_RANK"),
        (r"\$SLURM_LOCALID", "$OMPI_COMM_WORLD_LOCAL_RANK"),
        (r"\$SLURM_NTASKS", "$OMPI_COMM_WORLD_SIZE"),
        (r"\bsbatch\b", "bsub"),
        *_COMMON,
    ),
)


def settled(text: str, facts: Mapping[str, int]) -> str:
    """The output of a command that counts nodes or slots, where the job's options tell it; the
    text itself otherwise. `facts`: nodes, slots.
    """
    inner = re.fullmatch(r"\$\((.*)\)", text.strip(), re.DOTALL)
    if inner is None or "nodes" not in facts:
        return text
    command = inner[1].strip()
    if re.search(r"\bwc\s+-l\b", command) and "PBS_NODEFILE" in command:
        unique = re.search(r"\buniq\b|sort\s+-u|sort\s+--unique", command)
        return str(facts["nodes"] if unique else facts["slots"])
    if re.fullmatch(r"scontrol show hostnames?.*\|\s*wc\s+-l", command):
        return str(facts["nodes"])
    return text
