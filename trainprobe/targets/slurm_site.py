"""What a site's SLURM allows: its configuration, partitions, nodes and version. Asks scontrol
and srun only, each with a deadline, as any user may.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from trainprobe.system.run import Ran, run

ASK_S = 8.0
OUTPUT_CAP_BYTES = 16 * 2**20
MOST_ROWS = 20_000
TEXT_CAP = 4_000
SETTINGS = tuple(
    """
    AccountingStorageEnforce ClusterName DefMemPerCPU DefMemPerNode EnforcePartLimits
    JobFileAppend JobRequeue KillWait LaunchParameters MaxArraySize MaxMemPerCPU MaxMemPerNode
    PropagateResourceLimits PropagateResourceLimitsExcept RequeueExit RequeueExitHold SelectType
    SelectTypeParameters SLURM_VERSION TaskPlugin UnkillableStepTimeout PrologEpilogTimeout
    HealthCheckInterval
    """.split()
)
PARTITION_FIELDS = tuple(
    """
    PartitionName State Default MaxTime DefaultTime MaxNodes MinNodes DefMemPerCPU DefMemPerNode
    MaxMemPerNode MaxMemPerCPU OverSubscribe Nodes TotalNodes QoS
    """.split()
)
NODE_FIELDS = tuple(
    """
    NodeName CPUTot CPUEfctv RealMemory Gres State AvailableFeatures Partitions ThreadsPerCore
    """.split()
)
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_:/]*)=(.*?)(?=\s[A-Za-z][A-Za-z0-9_:/]*=|$)")


@dataclass(frozen=True)
class SlurmSite:
    """Rows as SLURM spells them; `unknown` says what could not be asked."""

    version: str
    config: Mapping[str, str]
    partitions: tuple[Mapping[str, str], ...]
    nodes: tuple[Mapping[str, str], ...]
    unknown: tuple[str, ...]
    took_s: float


def slurm_site(ask_s: float = ASK_S, asked: Callable[..., Ran] = run) -> SlurmSite:
    """Ask all at once and return the answers within `ask_s`. Never raises."""
    began = time.monotonic()
    questions = {
        "configuration": ("scontrol", "show", "config"),
        "partitions": ("scontrol", "show", "partition", "--oneliner"),
        "nodes": ("scontrol", "show", "node", "--oneliner"),
        "version": ("srun", "--version"),
    }
    with ThreadPoolExecutor(max_workers=len(questions)) as pool:
        waiting = {
            what: pool.submit(
                asked, argv, timeout_s=ask_s, output_cap_bytes=OUTPUT_CAP_BYTES, kill_s=0.5
            )
            for what, argv in questions.items()
        }
        answers = {what: row.result() for what, row in waiting.items()}
    failed = {what: why for what, ran in answers.items() if (why := _failed(ran))}
    text = {
        what: "" if what in failed else ran.stdout.decode("utf-8", "replace")
        for what, ran in answers.items()
    }
    config = config_of(text["configuration"])
    return SlurmSite(
        version=(text["version"].split() or [config.get("SLURM_VERSION", "")])[-1][:60],
        config=config,
        partitions=rows_of(text["partitions"], PARTITION_FIELDS),
        nodes=rows_of(text["nodes"], NODE_FIELDS),
        unknown=_sentences(failed),
        took_s=time.monotonic() - began,
    )


def _sentences(failed: Mapping[str, str]) -> tuple[str, ...]:
    """One for all that failed in the same way."""
    by_reason: dict[str, list[str]] = {}
    for what, why in failed.items():
        by_reason.setdefault(why.partition(": ")[2] or why, []).append(what)
    return tuple(
        f"{' and '.join(filter(None, (', '.join(whats[:-1]), whats[-1]))).capitalize()} of the site"
        f" could not be asked: {why}"
        for why, whats in by_reason.items()
    )


def _failed(ran: Ran) -> str:
    if ran.ended.how == "not_started":
        return f"{ran.argv[0]} is not on this host"
    if ran.ended.how == "exited" and ran.ended.code == 0:
        return ""
    lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return ran.ended.reason or (
        lines[0][:200]
        if lines
        else (
            f"{ran.argv[0]} ended with"
            f" {ran.ended.code if ran.ended.code is not None else f'signal {ran.ended.signal}'}"
        )
    )


def config_of(text: str) -> dict[str, str]:
    """`Name = value` rows of `scontrol show config`; only SETTINGS."""
    found = {}
    for line in text.splitlines()[:5000]:
        name, sign, value = line.partition("=")
        if sign and name.strip() in SETTINGS:
            found[name.strip()] = value.strip()[:TEXT_CAP]
    return found


def rows_of(text: str, fields: tuple[str, ...]) -> tuple[Mapping[str, str], ...]:
    """`A=1 B=two words C=3` lines as dicts of these fields."""
    rows = []
    for line in text.splitlines()[:MOST_ROWS]:
        row = {
            name: value.strip()[: TEXT_CAP * 5]
            for name, value in _FIELD.findall(line[:50_000])
            if name in fields
        }
        if row:
            rows.append(row)
    return tuple(rows)
