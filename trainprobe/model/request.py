"""What was asked of `trainprobe diagnose`: the command line and the settings file, checked for
form and not yet for sense.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Mapping, Optional, Tuple


@dataclass(frozen=True)
class DiagnoseRequest:
    """A request to climb the ladder.

    `nproc` is the number of ranks asked for and `gpus` the number of GPUs; at most one is given,
    None leaves the choice to the plan.
    `form` says what `argv` is: `none`; `launch`, a Python script and its arguments, whose ranks we
    start; `command`, the user's own launcher, with `{ranks}` where the number of ranks belongs.
    `argv` includes the script or command itself.
    `interpreter` is the Python of the job, None for the one found on the path. `imports` None means
    those of the script, or the usual ones.
    `timeout_s` bounds the whole climb. `case` is the folder to write to, None for a fresh one in
    the current folder.
    `ranks` and `rows` are the sizes that the user's command is tried at, smallest first; `{rows}`
    in `argv` stands for the rows. `ablate` changes one knob at a time where a cell fails, `knobs`
    are (name, value) that the user adds to them. `resume` is the folder of a case to go on with.
    `dataset`, `collate` and `model` are `pkg.module:name` or `file.py:name` (for `model` also a
    folder), "" for none. `workers` are the numbers of loader workers to try. `sample` names a batch
    for the model, or what makes one. `device` is where the ranks run, "" leaves the choice to the
    plan.
    `bench_steps`, `fuzz` (random configurations) and `seed` are for the model's stress test, None
    for its own choice. `planned` is what the real run will have where that is more than is tried
    here: rows, ranks, workers, by name.
    `config` is the settings file that was named, "" for none.
    `nodes` are names of hosts over which the ranks go, or `all` alone: those of the allocation;
    `nproc` and `gpus` are for each of them then.
    """

    nproc: Optional[int] = None
    gpus: Optional[int] = None
    interpreter: Optional[str] = None
    form: Literal["none", "launch", "command"] = "none"
    argv: Tuple[str, ...] = ()
    imports: Optional[Tuple[str, ...]] = None
    only: Tuple[str, ...] = ()
    skip: Tuple[str, ...] = ()
    timeout_s: Optional[float] = None
    case: Optional[str] = None
    probe_dirs: Tuple[str, ...] = ()
    ranks: Tuple[int, ...] = ()
    rows: Tuple[int, ...] = ()
    ablate: bool = False
    knobs: Tuple[Tuple[str, str], ...] = ()
    resume: Optional[str] = None
    dataset: str = ""
    collate: str = ""
    batch_size: Optional[int] = None
    workers: Tuple[int, ...] = ()
    model: str = ""
    sample: str = ""
    device: Literal["", "cpu", "cuda"] = ""
    bench_steps: Optional[int] = None
    fuzz: Optional[int] = None
    seed: Optional[int] = None
    planned: Mapping[str, int] = field(default_factory=dict)
    nodes: Tuple[str, ...] = ()
    config: str = ""


@dataclass(frozen=True)
class AttachRequest:
    """A request to look at a live job.

    `pid` is any process of it, None for the one job that there is. `deep` lets code run inside the
    job, `deep_if_open` only where the plain look leaves open what that would tell; `trigger_dump`
    asks its flight recorder for a dump. `watch_s` repeats the look every so many seconds, `times`
    times or until Ctrl-C. `timeout_s` bounds the whole look.
    `case` is the folder to write to, None for a fresh one in the current folder; `argv` is kept in
    it.
    `slurm` is a job of SLURM (4711, 4711.0), `hosts` are names for ssh: the look is made on each of
    their nodes then, and `pid` is None.
    `kubectl` is a selector of pods, with their `namespace` and `container`, "" for kubectl's own
    choice. `bundle` sends the tool along to nodes that do not have it, where `node_python` runs it;
    into pods it is always sent. `quick` ends after two looks. `watched`: whoever asks sees whether
    a pause goes on, and asks again; no look has to outlast it, or to sample for long who is late.
    """

    pid: Optional[int] = None
    deep: bool = False
    deep_if_open: bool = False
    trigger_dump: bool = False
    watch_s: Optional[float] = None
    times: Optional[int] = None
    timeout_s: Optional[float] = None
    quick: bool = False
    watched: bool = False
    case: Optional[str] = None
    argv: Tuple[str, ...] = ()
    slurm: str = ""
    hosts: Tuple[str, ...] = ()
    kubectl: str = ""
    namespace: str = ""
    container: str = ""
    bundle: bool = False
    node_python: str = "python3"


@dataclass(frozen=True)
class ReadyRequest:
    """A request to say whether nodes are ready for a job.

    `nodes` are names of hosts, `all` alone for those of the allocation, empty for what surrounds
    us: the nodes of a SLURM job, else this host.
    `nproc` are the ranks per node and `gpus` the GPUs of each, None where nobody said. `paths` are
    folders that every node must see, `script` is the training script. `interpreter` is the Python
    of the job, None for the first on PATH. `slurm` False asks SLURM nothing and looks at this host
    only. `timeout_s` bounds the whole, below the budget's own hard stop. `case` is the folder to
    write to, None for a fresh one in the current folder; `argv` is kept in it.
    """

    budget: Literal["quick", "standard", "deep"] = "quick"
    slot: str = "step"
    nodes: Tuple[str, ...] = ()
    nproc: Optional[int] = None
    gpus: Optional[int] = None
    paths: Tuple[str, ...] = ()
    script: str = ""
    interpreter: Optional[str] = None
    slurm: bool = True
    timeout_s: Optional[float] = None
    case: Optional[str] = None
    argv: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainRequest:
    """A request to explain what is left of a job.

    `paths` are files, folders, globs and `-` for stdin. `since` is an ISO time, or a span such as
    30m before the last line, as it was typed.
    `ranks` empty means all. `max_events` bounds the rows of the timeline that are shown, None
    leaves that to the report.
    `env_files`, `nodes` and `gpus` (per node) are what the user says of the surroundings.
    `timeout_s` bounds the reading.
    `case` is the folder to keep what was found in, None for a temporary one; `argv` is kept in it.
    """

    paths: Tuple[str, ...] = ()
    since: str = ""
    ranks: Tuple[int, ...] = ()
    max_events: Optional[int] = None
    env_files: Tuple[str, ...] = ()
    nodes: Optional[int] = None
    gpus: Optional[int] = None
    timeout_s: Optional[float] = None
    case: Optional[str] = None
    argv: Tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRequest:
    """A request to run a command and to watch it.

    `argv` is the command. `on_hang` is what to do when it hangs: report, or also end it (kill,
    requeue: they differ in the exit code). `on_slow` says whether a job that is slow is reported.
    `prepare` adds variables to its environment. `notify` are commands and URLs to tell, `metrics`
    a file for Prometheus, "" for none. `case` is the folder to write to, None for a fresh one.
    `watches` False only passes through: another process of this node watches. `closed` are the
    standard descriptors that we were started without.
    """

    argv: Tuple[str, ...] = ()
    on_hang: Literal["report", "kill", "requeue"] = "report"
    on_slow: Literal["report", "ignore"] = "report"
    prepare: bool = True
    notify: Tuple[str, ...] = ()
    metrics: str = ""
    case: Optional[str] = None
    quiet: bool = False
    watches: bool = True
    closed: Tuple[int, ...] = ()
