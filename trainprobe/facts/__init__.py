"""Typed facts, each with the ids of the evidence that shows it. Pure: nothing here touches the machine."""

from __future__ import annotations

from trainprobe.facts.cgroups import MemoryLimit
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.flight_dumps import FlightDump
from trainprobe.facts.gpus import Gpu, GpuProcess
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
from trainprobe.facts.reading import read
from trainprobe.facts.rungs import Rung
from trainprobe.facts.sources import Block, SourceSite
from trainprobe.facts.table import ANY, Facts, Look, Refusal
from trainprobe.model.facts import Fact

__all__ = [
    "ANY",
    "Block",
    "CollectiveCall",
    "Fact",
    "Facts",
    "FatalSignal",
    "FlightDump",
    "Gpu",
    "GpuProcess",
    "HostCheck",
    "ImportTried",
    "Interrupted",
    "LockWait",
    "LogEvent",
    "Look",
    "MainThread",
    "Measured",
    "MemoryLimit",
    "OomKill",
    "Output",
    "Plan",
    "ProbeFailure",
    "ProbeResult",
    "ProcessState",
    "Progress",
    "RankEnding",
    "RankException",
    "Refusal",
    "Rung",
    "Script",
    "Segfault",
    "SourceSite",
    "Thread",
    "Xid",
    "read",
]
