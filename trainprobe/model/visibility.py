"""What can be seen from here: raw values of one machine and one Python, before anything is
concluded from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Mapping, Optional, Tuple

from trainprobe.model.evidence import LookOutcome

DOCTOR_SCHEMA = "trainprobe.doctor/1"
Seen = Literal["yes", "part", "no", "unused"]


@dataclass(frozen=True)
class Tried:
    """A look that was tried: what came of it, why it failed, and what it found."""

    outcome: LookOutcome = "unavailable"
    reason: str = ""
    found: str = ""


@dataclass(frozen=True)
class Visibility:
    """The values of one host and user.

    `capabilities` is CapEff as /proc prints it and `yama` kernel.yama.ptrace_scope, None where the
    kernel has no Yama. `container` is what tells of a container, empty outside of one. `dump` is
    py-spy's look at a process of this user that is not a child of py-spy. `cgroups` are the
    versions by controller. `hidepid` is the option of the /proc mount, empty for none. `programs`
    are paths by name, of those that there are. `slurm_job` is the job around us; `kube` how kubectl
    knows its cluster, empty where it does not. `ras` says that somebody listens on NCCL's RAS port.
    `torch`, `cuda` and `nccl` are of the Python `python`; `no_torch` says why it has none.
    `variables` are the settings of the recorder in the environment.
    """

    host: str = ""
    user: str = ""
    uid: int = 0
    capabilities: str = ""
    yama: Optional[int] = None
    container: str = ""
    py_spy: str = ""
    no_py_spy: str = ""
    dump: Tried = Tried()
    kernel_log: Tried = Tried()
    gpus: Tried = Tried()
    cgroups: Mapping[str, int] = field(default_factory=dict)
    hidepid: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    slurm_job: str = ""
    kube: str = ""
    ras: bool = False
    ras_port: int = 0
    python: str = ""
    python_version: str = ""
    torch: str = ""
    cuda: str = ""
    nccl: bool = False
    no_torch: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class VisibilityLine:
    """One thing that can be seen, in part, or not; `unused` where there is nothing of its kind.
    `remedy` is what to type, empty where nothing is to be done.
    """

    id: str
    title: str
    seen: Seen
    says: str
    remedy: str = ""


@dataclass(frozen=True)
class VisibilityReport:
    """What `trainprobe doctor --json` writes."""

    schema: str
    version: str
    host: str
    user: str
    lines: Tuple[VisibilityLine, ...]
