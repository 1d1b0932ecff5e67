"""Typed facts, each with the ids of the evidence that shows it. Pure: nothing here touches the
machine.
"""

from __future__ import annotations

from trainprobe.collect.collectors.awaited import AwaitedPath, AwaitedValue
from trainprobe.collect.collectors.cgroup import MemoryLimit
from trainprobe.collect.collectors.deadlines import Checkpoint, Deadline
from trainprobe.collect.collectors.files import OpenFile, PipeEnd
from trainprobe.collect.collectors.gpus import Gpu, GpuProcess
from trainprobe.collect.collectors.leftovers import Leftover, LeftoverLook, OtherRun, Restarter
from trainprobe.collect.collectors.libraries import RankLibraries
from trainprobe.collect.collectors.lint import LintFinding, LintRead
from trainprobe.collect.collectors.locks import HeldLock, LockWait
from trainprobe.collect.collectors.loop_values import LoopValue
from trainprobe.collect.collectors.mounts import Mount
from trainprobe.collect.collectors.parting_values import FrameValue
from trainprobe.collect.collectors.ports import PortCounters
from trainprobe.collect.collectors.pressure import Pressure
from trainprobe.collect.collectors.ras import RasCommunicator, RasRank
from trainprobe.collect.collectors.sockets import Connection
from trainprobe.collect.collectors.source import SourceSite
from trainprobe.collect.collectors.worker_server import WorkerServer
from trainprobe.facts.announced_ranks import RankAnnounced
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.facts.counts_by_rank import RankCount
from trainprobe.facts.data_parallel import DataParallelMade
from trainprobe.facts.differences import Difference
from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.flight_dumps import FlightDump
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.imports import ImportTried
from trainprobe.facts.jobs import Job, JobRank
from trainprobe.facts.kernel_logs import OomKill, Segfault, Xid
from trainprobe.facts.knobs import KnobTried
from trainprobe.facts.log_events import LogEvent, Output
from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.log_jobs import LogJob, LogProgress
from trainprobe.facts.log_phases import LogPhase
from trainprobe.facts.log_stacks import LogStack
from trainprobe.facts.log_work import LogWork
from trainprobe.facts.main_threads import MainThread, Thread
from trainprobe.facts.node_checks import (
    CheckProgram,
    DroppedCheck,
    NodeClock,
    NodeValues,
    ReadyPlan,
)
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, PairsDone, PairTry, ScaleFault
from trainprobe.facts.plan import Interrupted, Plan, Script
from trainprobe.facts.printed_pace import PrintedPace
from trainprobe.facts.probe_results import Measured, ProbeFailure, ProbeResult
from trainprobe.facts.processes import ProcessState
from trainprobe.facts.progress import Progress
from trainprobe.facts.reading import read
from trainprobe.facts.removed_columns import ColumnsRemoved
from trainprobe.facts.rungs import Rung
from trainprobe.facts.samples import Samples, Spell
from trainprobe.facts.sbatch_plan import SbatchPlan
from trainprobe.facts.settings import Given
from trainprobe.facts.several_hosts import Reach, SilentNode
from trainprobe.facts.table import ANY, Facts, Look, Refusal
from trainprobe.model.facts import Fact
from trainprobe.stacks.source import Block, Skip

__all__ = [
    "ANY",
    "AwaitedPath",
    "AwaitedValue",
    "BadLink",
    "BadNode",
    "Block",
    "CheckProgram",
    "Checkpoint",
    "CollectiveCall",
    "ColumnsRemoved",
    "CommonFault",
    "Connection",
    "DataParallelMade",
    "Deadline",
    "Difference",
    "DroppedCheck",
    "Fact",
    "Facts",
    "FatalSignal",
    "FlightDump",
    "FrameValue",
    "Given",
    "Gpu",
    "GpuProcess",
    "HeldLock",
    "HostCheck",
    "ImportTried",
    "Interrupted",
    "Job",
    "JobRank",
    "KnobTried",
    "Leftover",
    "LeftoverLook",
    "LintFinding",
    "LintRead",
    "LockWait",
    "LogEvent",
    "LogFailure",
    "LogJob",
    "LogPhase",
    "LogProgress",
    "LogStack",
    "LogWork",
    "Look",
    "LoopValue",
    "MainThread",
    "Measured",
    "MemoryLimit",
    "Mount",
    "NodeClock",
    "NodeValues",
    "OomKill",
    "OpenFile",
    "OtherRun",
    "Output",
    "PairTry",
    "PairsDone",
    "PipeEnd",
    "Plan",
    "PortCounters",
    "Pressure",
    "PrintedPace",
    "ProbeFailure",
    "ProbeResult",
    "ProcessState",
    "Progress",
    "RankAnnounced",
    "RankCount",
    "RankEnding",
    "RankException",
    "RankLibraries",
    "RasCommunicator",
    "RasRank",
    "Reach",
    "ReadyPlan",
    "Refusal",
    "Restarter",
    "Rung",
    "Samples",
    "SbatchPlan",
    "ScaleFault",
    "Script",
    "Segfault",
    "SilentNode",
    "Skip",
    "SourceSite",
    "Spell",
    "Thread",
    "WorkerServer",
    "Xid",
    "read",
]
