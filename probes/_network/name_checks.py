"""Checks of names and interfaces: does the host's name lead to it, over a network that others
reach?
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from typing import Any, Dict, List, Sequence

from _network import interfaces
from _shared import checks, child_processes, kernel_files

DNS_S = 5.0
MOST_NAMES = 32


def resolved(name: str) -> List[str]:
    return list(
        dict.fromkeys(
            str(row[4][0]) for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        )
    )


def loops(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _asked_of_dns(own: str, others: List[str]) -> Dict[str, Any]:
    found: Dict[str, Any] = {"own": [], "back": "", "others": {}, "lost": {}}
    for name in (own, *others):
        try:
            addresses = resolved(name)
        except OSError as error:
            found["lost"][name] = error.strerror or str(error)
            continue
        found["own" if name == own else "others"] = (
            addresses if name == own else {**found["others"], name: addresses}
        )
    for address in found["own"][:1]:
        try:
            found["back"] = socket.gethostbyaddr(address)[0]
        except OSError as error:
            found["back_problem"] = error.strerror or str(error)
    return found


def sample(nodes: Sequence[str], own: str) -> List[str]:
    """The other nodes to look up: all of a few; of many the master and those after this one. So
    some node looks up each name, and hundreds of nodes do not storm the name server.
    """
    short = own.partition(".")[0]
    place = next((place for place, name in enumerate(nodes) if name.partition(".")[0] == short), 0)
    after = [*nodes[place + 1 :], *nodes[:place]]
    return [
        name for name in dict.fromkeys([*nodes[:1], *after]) if name.partition(".")[0] != short
    ][:MOST_NAMES]


def dns(launch: checks.Launch, results: checks.Results) -> None:
    """This host's name must lead to a reachable address; other nodes' names must not lead here."""
    own, limit_s = socket.gethostname(), results.threshold("host.dns", DNS_S)
    others = sample(launch.nodes, own)
    answer = child_processes.ask(lambda: _asked_of_dns(own, others), limit_s)
    if answer.how != "answered":
        state = "fail" if answer.how in ("timed_out", "stuck") else "unknown"
        sentence = f"Names are not resolved: {answer.reply}."
        results.add("host.dns", state, sentence, fix="check the name servers in /etc/resolv.conf")
        return
    found: Dict[str, Any] = answer.reply
    wrong: List[str] = []
    odd: List[str] = []
    several = launch.world > launch.nproc or len(launch.nodes) > 1
    gloo_set = bool(os.environ.get("GLOO_SOCKET_IFNAME"))
    own_loops = [address for address in found["own"] if loops(address)]
    if own in found["lost"]:
        (wrong if several and not gloo_set else odd).append(
            f"this host's own name {own} does not resolve ({found['lost'][own]}): gloo falls back"
            " to the loopback"
        )
    elif own_loops and len(own_loops) == len(found["own"]):
        (wrong if several and not gloo_set else odd if several else []).append(
            f"this host's own name {own} resolves to {own_loops[0]}: gloo binds to it, and no other"
            " node reaches that"
        )
    # Whether the name or this host's look-up is at fault is for the comparison of nodes to say;
    # MASTER_ADDR, which everybody needs, has a check of its own.
    odd += [
        f"{name} does not resolve here ({why})"
        for name, why in list(found["lost"].items())[:8]
        if name != own
    ]
    wrong += [
        f"{name} resolves to {addresses[0]}, which is this host"
        for name, addresses in found["others"].items()
        if all(map(loops, addresses))
    ]
    if found["back"] and not own_loops and found["back"].partition(".")[0] != own.partition(".")[0]:
        odd.append(
            f"{found['own'][0]} is {found['back']} backwards, and this host calls itself {own}"
        )
    fix = (
        f"mend /etc/hosts: take {own} off the 127.0.x.1 line and give it its address; or export"
        " GLOO_SOCKET_IFNAME=… NCCL_SOCKET_IFNAME=…"
    )
    sentence = "; ".join(wrong or odd) or f"{own} resolves to {', '.join(found['own'][:3])}" + (
        f", and {len(found['others'])} other nodes' names resolve" if others else ""
    )
    results.add(
        "host.dns",
        "fail" if wrong else "warn" if odd else "ok",
        f"Names: {sentence}.",
        {"own": found["own"], "back": found["back"]},
        fix=fix,
        threshold=f"{limit_s:g} s",
    )
    checks.value(
        "net.resolves", ("yes" if found["others"] else "none of the other nodes") if others else ""
    )
    checks.value(
        "host.own_name_loops", "yes" if own_loops and len(own_loops) == len(found["own"]) else "no"
    )


def own_addresses() -> List[str]:
    answer = child_processes.ask(lambda: resolved(socket.gethostname()), DNS_S)
    return list(answer.reply) if answer.how == "answered" else []


def kind(name: str) -> str:
    """How nodes are compared: `enp65s0` and `eno1` are alike, `lo` and `docker0` are not."""
    return "en" if re.match(r"en[opsx]", name) else re.sub(r"\d.*", "", name)


def takes(launch: checks.Launch, results: checks.Results) -> None:
    """What NCCL and gloo will use; on several nodes it must be one network that others reach."""
    rows = interfaces.interfaces()
    of_nccl, rule = interfaces.nccl(rows, dict(os.environ))
    of_gloo = interfaces.gloo(rows, dict(os.environ), own_addresses())
    several = launch.world > launch.nproc or len(launch.nodes) > 1
    better = [item.name for item in interfaces.useful(rows)]
    fix = (
        f"export NCCL_SOCKET_IFNAME={better[0]} GLOO_SOCKET_IFNAME={better[0]}"
        if better
        else "ip -br addr; bring an interface up that other nodes reach"
    )
    wrong = [] if of_nccl else [f"NCCL finds no interface{f' by {rule!r}' if rule else ''}"]
    for library, item in (("NCCL", of_nccl[0] if of_nccl else None), ("gloo", of_gloo)):
        wrong += (
            [f"{library} takes {item.name} ({item.address}), which no other node reaches"]
            if item and several and loops(item.address)
            else []
        )
    chosen = [
        f"{library}: {item.name} {item.address}"
        for library, item in (("NCCL", of_nccl[0] if of_nccl else None), ("gloo", of_gloo))
        if item
    ]
    apart = of_nccl and of_gloo and several and of_nccl[0].network != of_gloo.network and not wrong
    sentence = "; ".join(wrong) or f"{', '.join(chosen)}{': two networks' if apart else ''}"
    state = "fail" if wrong else "ok"
    results.add("net.if", state, f"Interfaces that will be used: {sentence}.", chosen, fix=fix)
    checks.value("net.interface", " ".join(dict.fromkeys(kind(item.name) for item in of_nccl)))
    checks.value("net.interface.gloo", kind(of_gloo.name) if of_gloo else "none")
    for item in of_nccl[:1]:
        checks.value("net.mtu", kernel_files.number(launch.root, f"/sys/class/net/{item.name}/mtu"))


def named(launch: checks.Launch, results: checks.Results) -> None:
    """What NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name must exist, be up and have an address."""
    rows, states = interfaces.interfaces(), interfaces.names(launch.root)
    rules = {
        name: os.environ[name]
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
        if os.environ.get(name)
    }
    wrong, several = [], launch.world > launch.nproc or len(launch.nodes) > 1
    for variable, rule in rules.items():
        if variable == "GLOO_SOCKET_IFNAME":
            fits, whole = [item for item in rows if item.name in rule.split(",")], rule.split(",")
        else:
            fits = interfaces.matching(rule, rows)
            whole = [part.partition(":")[0] for part in rule.lstrip("^=").split(",")]
        there = [name for name in states if any(name.startswith(part) for part in whole if part)]
        if not fits:
            why = (
                f"{', '.join(f'{name} is {states[name]} or has no address' for name in there)}"
                if there and not rule.startswith("^")
                else f"this host has {', '.join(sorted(states))}"
            )
            wrong.append(
                f"{variable}={rule} fits no interface that is up and has an address: {why}"
            )
        elif several and all(item.flags & interfaces.LOOPBACK for item in fits):
            wrong.append(f"{variable}={rule} is the loopback, which no other node reaches")
        elif variable == "GLOO_SOCKET_IFNAME" and not all(
            item.flags & interfaces.UP for item in fits
        ):
            wrong.append(f"{variable}={rule}: it is down")
    if not rules:
        results.add(
            "net.ifname", "skip", "Neither NCCL_SOCKET_IFNAME nor GLOO_SOCKET_IFNAME is set."
        )
        return
    better = [item.name for item in interfaces.useful(rows)]
    fix = (
        f"export NCCL_SOCKET_IFNAME={better[0]} GLOO_SOCKET_IFNAME={better[0]}"
        if better
        else f"unset {' '.join(rules)}"
    )
    sentence = (
        "; ".join(wrong)
        or ", ".join(f"{variable}={rule}" for variable, rule in rules.items()) + " can be used"
    )
    results.add(
        "net.ifname", "fail" if wrong else "ok", f"Named interfaces: {sentence}.", rules, fix=fix
    )
