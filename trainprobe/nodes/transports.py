"""Commands for one node, by the site's ways: those of the batch system, OpenSSH, kubectl, or this
host.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trainprobe.errors import UsageError
from trainprobe.system import call_back
from trainprobe.targets.allocations import SAYS, Allocation, allocation_around
from trainprobe.targets.kube_pods import Pod

CONNECT_S = 12  # for the connection alone; a site's name service may need its five seconds twice
# Python searches its working folder first: a project's queue.py or types.py would shadow the
# standard library's.
WITHOUT_CWD = "import sys; sys.path[:] = [path for path in sys.path if path]"
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Variables of an allocation or an outer step that srun would take as options of our own step: they
# may label its output, redirect it, or bind it to CPUs of another node.
_STEP_OPTIONS = tuple(
    f"SLURM_{name}"
    for name in (
        *("CPU_BIND", "CPUS_PER_TASK", "DISTRIBUTION", "EPILOG", "EXACT", "EXCLUSIVE", "GPU_BIND"),
        *("GPUS_PER_NODE", "GPUS_PER_TASK", "HINT", "LABELIO", "MEM_BIND", "MULTI_PROG", "NPROCS"),
        *("NTASKS", "OPEN_MODE", "PROLOG", "STDERRMODE", "STDINMODE", "STDOUTMODE", "TASK_EPILOG"),
        *("TASK_PROLOG", "THREADS_PER_CORE", "TRES_PER_TASK", "WCKEY"),
    )
)


@dataclass(frozen=True)
class Node:
    """A node and the command that asks it.

    `said` goes to the stdin of the command, which stays open afterwards if `held`: its end means
    that nobody waits any more. `env` is the environment of the command on this machine, None for
    our own. `far` is the command on the node itself, where plain OpenSSH reaches it.
    """

    name: str
    argv: tuple[str, ...]
    said: bytes = b""
    held: bool = False
    env: Mapping[str, str] | None = field(default=None, compare=False)
    far: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """How to reach the nodes `names`; `job` is their job in the batch system.

    `command` turns a node's name and a command for it into the command that runs here; its third
    argument says whether something goes to stdin. `start` turns arguments of our command line into
    the command that runs there; `sent` goes to its stdin first: the tool itself, where the nodes do
    not have it. `unseen` says which other nodes of the job cannot be looked at, and why.
    `scheduler` is the batch system of their job, "" where it is not known.
    """

    by: Literal["slurm", "pbs", "lsf", "flux", "sge", "ssh", "kubectl", "here"]
    names: tuple[str, ...]
    command: Callable[[str, Sequence[str], bool], tuple[str, ...]] = field(compare=False)
    job: str = ""
    env: Mapping[str, str] | None = field(default=None, compare=False)
    start: Callable[[Sequence[str]], tuple[str, ...]] = field(
        default=lambda words: ours(*words), compare=False
    )
    sent: bytes = field(default=b"", repr=False)
    unseen: str = ""
    scheduler: str = ""

    def node(
        self, name: str, words: Sequence[str], said: bytes = b"", *, held: bool = False
    ) -> Node:
        """Make the command that runs `trainprobe WORDS` on `name`, with `said` on its stdin.
        Secrets and plans go there, since everybody can read a command line.
        """
        # The tool has some megabytes, and all nodes share the same bytes.
        whole = self.sent + said if said and self.sent else said or self.sent
        held = held or bool(self.sent)
        far = self.start(words)
        return Node(
            name,
            self.command(name, far, bool(whole) or held),
            whole,
            held,
            self.env,
            far if self.by == "ssh" else (),
        )

    def nodes(self, words: Sequence[str], said: bytes = b"", *, held: bool = False) -> list[Node]:
        """Make the same for all of its nodes."""
        return [self.node(name, words, said, held=held) for name in self.names]


def ours(*words: str) -> tuple[str, ...]:
    """The command of this tool with this Python, wherever its package lies."""
    start = (
        f"{WITHOUT_CWD}; sys.path.insert(0, {PACKAGE!r}); from trainprobe.cli import main; main()"
    )
    return (sys.executable, "-c", start, *words)


def here_way(name: str = "") -> Way:
    """This host alone, under its own name or the one that the site gives it."""
    return Way("here", (name or os.uname().nodename,), lambda _name, argv, _talks: tuple(argv))


def srun_way(job: str, names: Sequence[str]) -> Way:
    """A step for each node of a running job, so that a silent one delays no other (20.11)."""

    def command(name: str, argv: Sequence[str], talks: bool) -> tuple[str, ...]:
        step = ("srun", "--overlap", f"--jobid={job}", "--nodes=1", "--ntasks=1")
        shared = ("--kill-on-bad-exit=0", "--mpi=none", "--chdir=/")
        return (*step, *shared, *(() if talks else ("--input=none",)), f"--nodelist={name}", *argv)

    return Way(
        "slurm",
        tuple(names),
        command,
        job,
        {name: value for name, value in os.environ.items() if not name.startswith(_STEP_OPTIONS)},
    )


def ssh_way(names: Sequence[str]) -> Way:
    """The user's own OpenSSH, without prompts; none for this host. TRAINPROBE_SSH names another
    command, such as `ssh -F config`. Raises UsageError where that is not a command.
    """
    try:
        ssh = tuple(shlex.split(os.environ.get("TRAINPROBE_SSH") or "ssh"))
    except ValueError as error:
        raise UsageError(
            f"TRAINPROBE_SSH is no command: {error}.", "Such as: ssh -F /path/to/config."
        ) from error
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-T")

    def command(name: str, argv: Sequence[str], _talks: bool) -> tuple[str, ...]:
        return tuple(argv) if is_local(name) else (*ssh, *options, "--", name, shlex.join(argv))

    return Way("ssh", tuple(names), command)


def kubectl_way(pods: Sequence[Pod]) -> Way:
    """`kubectl exec` into each pod, which need not have the tool: see `bundle.carrying`."""
    by_name = {pod.name: pod for pod in pods}

    def command(name: str, argv: Sequence[str], talks: bool) -> tuple[str, ...]:
        pod = by_name[name]
        options = (*(("--stdin",) if talks else ()), "--namespace", pod.namespace)
        return ("kubectl", "exec", *options, name, "--container", pod.container, "--", *argv)

    return Way("kubectl", tuple(by_name), command)


def way_in_allocation(environ: Mapping[str, str] = os.environ, names: Sequence[str] = ()) -> Way:
    """The way to the nodes of the allocation around us, or to those of them that are named.

    It is the batch system's own, else ssh. Raises UsageError, with the options that help, where
    there is no allocation, its nodes are not known, or there is no srun.
    """
    found = allocation_around(environ)
    if found is None:
        raise UsageError(
            "This is no allocation of a scheduler, so the nodes are not known.",
            "Name them: --hosts node1,node2; or begin with salloc, sbatch, qsub, bsub or flux.",
        )
    if found.trouble:
        raise UsageError(
            f"The nodes of this job of {SAYS[found.by]} are not known: {found.trouble}.",
            "Name them: --nodes node1,node2.",
        )
    chosen = tuple(names) or found.names
    path = environ.get("PATH")
    if found.by != "slurm":
        starts = shutil.which(_STARTERS[found.by], path=path) is not None
        way = _started_by(found, chosen) if starts else ssh_way(chosen)
        return replace(way, scheduler=found.by)
    if shutil.which("srun", path=path) is None:
        raise UsageError(
            "SLURM's srun is not here, as in a container.",
            f"Over ssh: --hosts {','.join(chosen)}; or start it outside of the container.",
        )
    return srun_way(found.job, chosen)


_STARTERS = {"pbs": "pbsdsh", "lsf": "blaunch", "flux": "flux", "sge": "qrsh"}


def _started_by(found: Allocation, names: Sequence[str]) -> Way:
    """The job's own starter: OpenPBS' and TORQUE's pbsdsh(1), LSF's blaunch(1), flux-exec(1), and
    qrsh(1) of Grid Engine. Those of LSF and Grid Engine take a line for a shell, as ssh does.
    """
    places = found.places or {}

    def command(name: str, argv: Sequence[str], talks: bool) -> tuple[str, ...]:
        if found.by == "lsf":
            return ("blaunch", *(() if talks else ("-n",)), name, shlex.join(argv))
        if found.by == "sge":
            silent = () if talks else ("-nostdin",)
            return ("qrsh", "-inherit", *silent, name, shlex.join(argv))
        if found.by == "flux":
            silent = () if talks else ("--noinput",)
            return ("flux", "exec", *silent, f"--rank={places[name]}", "--dir=/", *argv)
        starter = ("pbsdsh", "-n", str(places[name]), "--")
        script = os.path.abspath(call_back.__file__)
        return (sys.executable, "-I", "-S", script, name, *starter, "--call", *argv)

    return Way(found.by, tuple(names), command, found.job)


def is_local(name: str) -> bool:
    """Is this the name of this host, with or without its domain?"""
    own = os.uname().nodename
    return name in (own, "localhost") or (
        "." not in (name if "." in own else own) and name.partition(".")[0] == own.partition(".")[0]
    )
