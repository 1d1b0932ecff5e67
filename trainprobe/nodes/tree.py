"""Many hosts over OpenSSH by ClusterShell's `clush`, where the site has configured a tree of
gateways for it (topology.conf). Without one, or for few hosts, each host is asked directly.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trainprobe.model.evidence import Ended
from trainprobe.model.node_names import folded
from trainprobe.nodes.transports import Node, is_local
from trainprobe.system.run import Ran, run

MANY = 32  # more than these are worth a tree
FANOUT = 64
OUTPUT_CAP_BYTES = 2**30
LAST_S = 2.0  # between clush's own deadline for a host and the one for clush
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,252}", re.ASCII)
_CODE = re.compile(r"exited with exit code (\d{1,3})$")


@dataclass
class _Output:
    out: list[bytes] = field(default_factory=list)
    err: list[bytes] = field(default_factory=list)
    code: int = 0
    late: bool = False


def asked_by_tree(
    nodes: Sequence[Node], timeout_s: float, given_up: Callable[[], bool]
) -> dict[str, Ran]:
    """Ask those of `nodes` that a tree reaches, and return the result of each; empty where there is
    no tree, or too few hosts.

    A host that clush could not ask, as behind a gateway that is down, is missing: it can be asked
    directly.
    """
    topology = _topology()
    below = [
        node
        for node in nodes
        if node.far and _NAME.fullmatch(node.name) and not is_local(node.name)
    ]
    ssh = shlex.split(os.environ.get("TRAINPROBE_SSH") or "ssh")
    same_task = len({(node.far, node.said) for node in below}) == 1
    if (
        len(below) <= MANY
        or not same_task
        or topology is None
        or shutil.which("clush") is None
        or os.path.basename(ssh[0]) != "ssh"
    ):
        return {}
    first = below[0]
    options = shlex.join([*ssh[1:], "-o", "BatchMode=yes", "-T"])
    limits = ("-f", str(FANOUT), "-t", "10", "-u", f"{max(1.0, timeout_s - LAST_S):.0f}")
    names = folded(node.name for node in below)
    argv = (
        "clush",
        "-w",
        names,
        "--topology",
        topology,
        "-q",
        "--color=never",
        "-o",
        options,
        *limits,
        *(() if first.said else ("-n",)),
        shlex.join(first.far),
    )
    ran = run(
        argv,
        timeout_s=timeout_s,
        input=first.said,
        output_cap_bytes=OUTPUT_CAP_BYTES,
        given_up=given_up,
    )
    outputs = _by_host(ran, {node.name for node in below})
    return {
        node.name: _as_if_alone(node, output, ran)
        for node in below
        if (output := outputs[node.name]).out or output.late or ran.ended.how == "timed_out"
    }


def _topology() -> str | None:
    """The path of topology.conf in ClusterShell's own folders."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    folders = (
        os.environ.get("CLUSTERSHELL_CFGDIR", ""),
        os.path.join(config, "clustershell"),
        os.path.expanduser("~/.local/etc/clustershell"),
        "/etc/clustershell",
    )
    return next(
        (
            path
            for folder in folders
            if folder and os.path.isfile(path := os.path.join(folder, "topology.conf"))
        ),
        None,
    )


def _by_host(ran: Ran, names: set[str]) -> dict[str, _Output]:
    found = {name: _Output() for name in names}
    for line in ran.stdout.splitlines():
        host, colon, text = line.partition(b": ")
        if colon and host.decode("utf-8", "replace") in names:
            found[host.decode()].out.append(text)
    for line in ran.stderr.splitlines():
        own = line.startswith(b"clush: ")
        host, colon, text = line.removeprefix(b"clush: ").partition(b": ")
        output = found.get(host.decode("utf-8", "replace")) if colon else None
        if output is None:
            continue
        if not own:
            output.err.append(text)
        elif b"timeout" in text:
            output.late = True
        elif (code := _CODE.search(text.decode("utf-8", "replace"))) is not None:
            output.code = int(code[1])
    return found


def _as_if_alone(node: Node, output: _Output, ran: Ran) -> Ran:
    late = output.late or (ran.ended.how == "timed_out" and not output.code)
    at, took_s = ran.ended.at or time.time(), ran.ended.took_s
    ended = (
        Ended("timed_out", by_us=True, phase="run", at=at, took_s=took_s)
        if late
        else Ended("exited", code=output.code, at=at, took_s=took_s)
    )
    return Ran(
        ("clush", *node.argv[1:]),
        ended,
        b"\n".join(output.out),
        b"\n".join(output.err),
        cut=ran.cut,
    )
