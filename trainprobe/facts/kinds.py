"""Every kind of fact, by its name."""

from __future__ import annotations

from trainprobe.facts.cgroups import MemoryLimit
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.flight_dumps import FlightDump
from trainprobe.facts.gpus import Gpu
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.imports import ImportTried
from trainprobe.facts.kernel_logs import OomKill, Segfault, Xid
from trainprobe.facts.locks import LockWait
from trainprobe.facts.log_events import LogEvent, Output
from trainprobe.facts.main_threads import MainThread, Thread
from trainprobe.facts.plan import Interrupted, Plan, Script
from trainprobe.facts.probe_results import Measured, ProbeFailure, ProbeResult
from trainprobe.facts.processes import ProcessState
from trainprobe.facts.progress import Progress
from trainprobe.facts.rungs import Rung
from trainprobe.facts.sources import SourceSite
from trainprobe.model.facts import Fact

KINDS: tuple[type[Fact], ...] = (
    CollectiveCall,
    FatalSignal,
    FlightDump,
    Gpu,
    HostCheck,
    ImportTried,
    Interrupted,
    LockWait,
    LogEvent,
    MainThread,
    Measured,
    MemoryLimit,
    OomKill,
    Output,
    Plan,
    ProbeFailure,
    ProbeResult,
    ProcessState,
    Progress,
    RankEnding,
    RankException,
    Rung,
    Script,
    Segfault,
    SourceSite,
    Thread,
    Xid,
)
BY_NAME: dict[str, type[Fact]] = {kind.__name__: kind for kind in KINDS}
