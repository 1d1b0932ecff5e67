"""The ways to nodes that a site has already: a step of its own by srun, OpenSSH, this very host. Each way makes the command that asks one node."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainprobe.errors import UsageError
from trainprobe.targets.host_names import host_names
from trainprobe.targets.kube_pods import Pod

CONNECT_S = 12  # for the connection alone; a site's name service may need its five seconds twice
# Python looks first where it was started: in a project's folder, whose queue.py or types.py is not the one that is meant.
WITHOUT_CWD = "import sys; sys.path[:] = [path for path in sys.path if path]"
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What an allocation or an outer step leaves in the environment, and what srun would take as options of our own step: its output may be
# labelled or sent elsewhere, and a mask of CPUs is one of another node.
_BENDS = (
    "SLURM_CPU_BIND",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_EPILOG",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_GPU_BIND",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_HINT",
    "SLURM_LABELIO",
    "SLURM_MEM_BIND",
    "SLURM_MULTI_PROG",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_OPEN_MODE",
    "SLURM_PROLOG",
    "SLURM_STDERRMODE",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_TASK_EPILOG",
    "SLURM_TASK_PROLOG",
    "SLURM_THREADS_PER_CORE",
    "SLURM_TRES_PER_TASK",
    "SLURM_WCKEY",
)


@dataclass(frozen=True)
class Node:
    """A node and the command that asks it. `said` goes to that command's stdin, which stays open behind it where `held`: its end says that nobody waits.

    `env` is the environment of the command on this machine, None for our own. `far` is what runs on the node, where plain OpenSSH goes there.
    """

    name: str
    argv: tuple[str, ...]
    said: bytes = b""
    held: bool = False
    env: Mapping[str, str] | None = field(default=None, compare=False)
    far: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """How nodes are reached. `names` are the nodes that are meant, `job` is a job of SLURM.

    `command` makes, of a node's name and what is to be run there, what is to be run here; its third argument says whether there is something for its stdin.
    `start` makes, of the words for our own command line, what is run there, and `sent` goes to its stdin first: the tool itself, where it is not on the nodes.
    """

    by: Literal["slurm", "ssh", "kubectl", "here"]
    names: tuple[str, ...]
    command: Callable[[str, Sequence[str], bool], tuple[str, ...]] = field(compare=False)
    job: str = ""
    env: Mapping[str, str] | None = field(default=None, compare=False)
    start: Callable[[Sequence[str]], tuple[str, ...]] = field(default=lambda words: ours(*words), compare=False)
    sent: bytes = field(default=b"", repr=False)

    def node(self, name: str, words: Sequence[str], said: bytes = b"", *, held: bool = False) -> Node:
        """The command that has `name` run `trainprobe WORDS`, with `said` on its stdin. Secrets and plans go there: a command line is for all to see."""
        whole = self.sent + said if said and self.sent else said or self.sent  # the tool is some megabytes, and the same for all
        held = held or bool(self.sent)
        far = self.start(words)
        return Node(name, self.command(name, far, bool(whole) or held), whole, held, self.env, far if self.by == "ssh" else ())

    def nodes(self, words: Sequence[str], said: bytes = b"", *, held: bool = False) -> list[Node]:
        """The same for all of its nodes."""
        return [self.node(name, words, said, held=held) for name in self.names]


def ours(*words: str) -> tuple[str, ...]:
    """The command that is this very tool with this very Python, wherever its package lies."""
    start = f"{WITHOUT_CWD}; sys.path.insert(0, {PACKAGE!r}); from trainprobe.cli import main; main()"
    return (sys.executable, "-c", start, *words)


def here_way(name: str = "") -> Way:
    """This host alone, under its own name or the one that the site gives it."""
    return Way("here", (name or os.uname().nodename,), lambda _name, argv, _talks: tuple(argv))


def srun_way(job: str, names: Sequence[str]) -> Way:
    """A step of its own on each node of a running job, beside what runs there; one that does not answer holds up no other. SLURM 20.11 or newer."""

    def command(name: str, argv: Sequence[str], talks: bool) -> tuple[str, ...]:
        shared = ("--overlap", f"--jobid={job}", "--nodes=1", "--ntasks=1", "--kill-on-bad-exit=0", "--mpi=none", "--chdir=/")
        return ("srun", *shared, *(() if talks else ("--input=none",)), f"--nodelist={name}", *argv)

    return Way("slurm", tuple(names), command, job, {name: value for name, value in os.environ.items() if not name.startswith(_BENDS)})


def ssh_way(names: Sequence[str]) -> Way:
    """The user's own OpenSSH, which asks for nothing; this very host needs none. TRAINPROBE_SSH is another command for it, such as `ssh -F config`.

    Raises UsageError where that is no command.
    """
    try:
        ssh = tuple(shlex.split(os.environ.get("TRAINPROBE_SSH") or "ssh"))
    except ValueError as error:
        raise UsageError(f"TRAINPROBE_SSH is no command: {error}.", "Such as: ssh -F /path/to/config.") from error
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-T")

    def command(name: str, argv: Sequence[str], _talks: bool) -> tuple[str, ...]:
        return tuple(argv) if is_here(name) else (*ssh, *options, "--", name, shlex.join(argv))

    return Way("ssh", tuple(names), command)


def kubectl_way(pods: Sequence[Pod]) -> Way:
    """Into each pod by `kubectl exec`. The tool need not be in it: see `bundle.carrying`."""
    by_name = {pod.name: pod for pod in pods}

    def command(name: str, argv: Sequence[str], talks: bool) -> tuple[str, ...]:
        pod = by_name[name]
        return ("kubectl", "exec", *(("--stdin",) if talks else ()), "--namespace", pod.namespace, name, "--container", pod.container, "--", *argv)

    return Way("kubectl", tuple(by_name), command)


def way_of_surroundings(environ: Mapping[str, str] = os.environ) -> Way:
    """The way to the nodes among which we were started: inside an allocation of SLURM its own. Asks SLURM nothing.

    Raises UsageError with what to give where there are none, or where srun is not there.
    """
    job, listed = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST", "")
    if not job.isdigit() or not listed:
        raise UsageError("This is no allocation of a scheduler, so the nodes are not known.", "Name them: --hosts node1,node2; or begin with salloc or sbatch.")
    names = host_names("SLURM_JOB_NODELIST", listed)
    if shutil.which("srun", path=environ.get("PATH")) is None:
        raise UsageError("SLURM's srun is not here, as in a container.", f"Over ssh: --hosts {listed}; or start it outside of the container.")
    return srun_way(job, names)


def is_here(name: str) -> bool:
    """Is this the name of this host, with or without its domain?"""
    own = os.uname().nodename
    return name in (own, "localhost") or ("." not in (name if "." in own else own) and name.partition(".")[0] == own.partition(".")[0])
