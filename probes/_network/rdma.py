"""InfiniBand and RoCE in sysfs: ports, rates, GIDs, counters. No device is opened."""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple

from _shared import checks, kernel_files

COUNTERS = (
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "port_rcv_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
FLAPS = 5.0  # AzNHC: five flaps in 24 hours


class Port(NamedTuple):
    """`rate` in Gb/s as the port runs; `gids` are the types of its filled GIDs."""

    device: str
    number: str
    state: str
    physical: str
    layer: str
    rate: float
    gids: List[str]
    counters: Dict[str, int]


def ports(root: str) -> List[Port]:
    """All ports, those that NCCL_IB_HCA leaves out too."""
    found = []
    for path in kernel_files.matching(root, "/sys/class/infiniband/*/ports/*"):
        device, number = path.split("/")[4], os.path.basename(path)
        rate = re.match(r"([\d.]+)", kernel_files.line(root, f"{path}/rate"))
        gids = []
        for gid in kernel_files.matching(root, f"{path}/gids/*")[:64]:
            text = kernel_files.line(root, gid)
            kind = kernel_files.line(root, f"{path}/gid_attrs/types/{os.path.basename(gid)}")
            if re.search(r"[1-9a-f]", text.replace("fe80", "", 1)) and kind:
                gids.append(kind)
        counters = {
            name: kernel_files.number(root, f"{path}/counters/{name}") or 0 for name in COUNTERS
        }
        state = kernel_files.line(root, f"{path}/state").partition(":")[
            2
        ].strip() or kernel_files.line(root, f"{path}/state")
        physical = kernel_files.line(root, f"{path}/phys_state").partition(":")[2].strip()
        found.append(
            Port(
                device,
                number,
                state,
                physical,
                kernel_files.line(root, f"{path}/link_layer"),
                float(rate[1]) if rate else 0.0,
                gids,
                counters,
            )
        )
    return found


def wanted(found: List[Port]) -> List[Port]:
    """The ports that NCCL_IB_HCA selects: prefixes, `^` excludes, `=` for whole names, `:port`."""
    rule = os.environ.get("NCCL_IB_HCA", "")
    leaves_out, rule = rule.startswith("^"), rule.lstrip("^")
    whole, rule = rule.startswith("="), rule.lstrip("=")
    parts = [part.split(":") for part in rule.split(",") if part]

    def fits(port: Port) -> bool:
        return any(
            (port.device == part[0] if whole else port.device.startswith(part[0]))
            and (len(part) < 2 or part[1] in ("", port.number))
            for part in parts
        )

    return [port for port in found if not parts or fits(port) != leaves_out]


def state(launch: checks.Launch, results: checks.Results) -> None:
    every = ports(launch.root)
    used = wanted(every)
    off = os.environ.get("NCCL_IB_DISABLE", "0") not in ("", "0")
    if not every:
        results.add("ib.state", "skip", "This host has no InfiniBand or RoCE adapter.")
        return
    up = [port for port in used if port.state == "ACTIVE"]
    down = [
        port
        for port in used
        if port.state != "ACTIVE" and (port.layer == "InfiniBand" or port.physical == "LinkUp")
    ]
    named = os.environ.get("NCCL_IB_HCA", "")[:1] not in ("", "^")
    # Of a port that was never up since the boot nobody can say here that it should be: cards have
    # two, and often one cable.
    lost = [
        f"{_shown(port)}{' and was up before' if port.counters['link_downed'] else ''}"
        for port in down
        if named or port.counters["link_downed"]
    ]
    never = [
        f"{_shown(port)} and was not up since the boot"
        for port in down
        if not named and not port.counters["link_downed"]
    ]
    fastest = max((port.rate for port in up), default=0.0)
    slow = [
        f"{port.device} runs at {port.rate:g} of {fastest:g} Gb/s"
        for port in up
        if port.layer == "InfiniBand" and port.rate < fastest and _kin(port, up, fastest)
    ]
    # gloo goes over TCP in any case
    needed = bool(kernel_files.matching(launch.root, "/dev/nvidia[0-9]*")) or any(
        port.layer == "InfiniBand" for port in used
    )
    none = [] if up or not needed else [f"none of {len(used)} ports is active: NCCL goes over TCP"]
    least = results.threshold("ib.state", 0)
    few = [f"{len(up)} of {least:g} ports are active"] if len(up) < least else []
    bad, worth = few + none + lost, slow + never
    sentence = "; ".join(bad + worth) or (
        f"{len(up)} ports are active, at {fastest:g} Gb/s"
        if up
        else "no port is active, and none is needed"
    )
    results.add(
        "ib.state",
        "ok" if off or not (bad or worth) else "fail" if bad else "warn",
        f"InfiniBand and RoCE: {sentence}.",
        [port._asdict() for port in used][:16],
        fix="ibstat; drain the node, look at cable and switch port",
    )
    for port in used:
        checks.value(
            f"rdma.{port.device}{'' if port.number == '1' else ':' + port.number}",
            f"{port.state} {port.layer} {port.rate:g} Gb/s",
        )
    checks.value("rdma.ports", len(up))


def _shown(port: Port) -> str:
    return (
        f"{port.device} port {port.number} is"
        f" {port.state}{f'/{port.physical}' if port.layer == 'InfiniBand' else ''}"
    )


def _kin(port: Port, others: List[Port], rate: float) -> bool:
    """Whether most ports of its kind run at that rate; a storage port may be slower on purpose."""
    kind = [item for item in others if item.layer == port.layer]
    return sum(item.rate == rate for item in kind) > len(kind) / 2


def gid(launch: checks.Launch, results: checks.Results) -> None:
    roce = [
        port
        for port in wanted(ports(launch.root))
        if port.layer == "Ethernet" and port.state == "ACTIVE"
    ]
    if not roce:
        results.add("ib.gid", "skip", "This host has no active RoCE port.")
        return
    without = [port.device for port in roce if "RoCE v2" not in port.gids]
    index = os.environ.get("NCCL_IB_GID_INDEX", "")
    wrong = [f"{', '.join(without)} has no GID of RoCE v2"] if without else []
    for port in roce if index.isdecimal() else ():
        path = f"/sys/class/infiniband/{port.device}/ports/{port.number}/gid_attrs/types/{index}"
        wrong += (
            []
            if "v2" in kernel_files.line(launch.root, path)
            else [f"NCCL_IB_GID_INDEX={index} of {port.device} is no GID of RoCE v2"]
        )
    sentence = f"RoCE: {'; '.join(wrong) or f'{len(roce)} ports have a GID of v2'}."
    fix = "show_gids; give the interface its IPv4 address, unset NCCL_IB_GID_INDEX"
    results.add("ib.gid", "fail" if wrong else "ok", sentence, without, fix=fix)
    checks.value("rdma.gid_index", index)


def flaps(launch: checks.Launch, results: checks.Results) -> None:
    found = wanted(ports(launch.root))
    if not found:
        results.add("ib.flap", "skip", "This host has no InfiniBand or RoCE adapter.")
        return
    uptime_days = max(
        1.0, float((kernel_files.line(launch.root, "/proc/uptime").split() or ["86400"])[0]) / 86400
    )
    most = results.threshold("ib.flap", FLAPS)
    bad = [
        f"{port.device} went down {port.counters['link_downed']} times in {uptime_days:.0f} days"
        for port in found
        if port.counters["link_downed"] / uptime_days >= most
    ]
    sentence = "; ".join(bad) or f"no link of {len(found)} went down {most:g} times a day"
    results.add(
        "ib.flap",
        "fail" if bad else "ok",
        f"Links: {sentence}.",
        {port.device: port.counters for port in found},
        fix="mlxlink -d DEVICE -m; look at cable and transceiver",
        threshold=f"{most:g} a day",
    )
