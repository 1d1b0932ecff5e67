"""One of the job's own NCCL settings breaks it.

NCCL_* variables that helped on another machine, or a forgotten /etc/nccl.conf: an algorithm that does not exist here, a topology file that is not there, a network
plugin that is not installed, all ways between two GPUs switched off.

It is recognised by NCCL's words about a setting, and (weaker) by unusual NCCL_* values beside a failure that names no other reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import failed_of_something_else, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, listed, sentence, short
from trainprobe.facts import Facts, Given
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# NCCL's enqueue.cc, graph/xml.cc, net.cc, transport.cc, init.cc.
WORDING = (
    r"no algorithm/protocol available|Invalid NCCL_COMM_ID|Could not open XML topology file|Failed to initialize any NET plugin|Error: network [\w -]{1,40} not found"
    r"|No transport found|has no transport for|NCCL_\w{2,40} (?:was|has been) set to|Could not force merge NICs"
)
SHOWS = ("nccl-setting-faulty", "nccl-no-transport")
# Settings that many working jobs have. `P2P_DISABLE` and the like are bridges that people leave behind, and slow, but rarely wrong.
USUAL = re.compile(
    r"DEBUG\w*|SOCKET_IFNAME|IB_(?:HCA|DISABLE|GID_INDEX|TC|SL|TIMEOUT|RETRY_CNT|QPS_PER_CONNECTION|CUDA_SUPPORT|PCI_RELAXED_ORDERING)|NET_GDR_\w+|ASYNC_ERROR_HANDLING"
    r"|BLOCKING_WAIT|NVLS_ENABLE|P2P_DISABLE|P2P_LEVEL|SHM_DISABLE|CROSS_NIC|MIN_NCHANNELS|LAUNCH_MODE|CUMEM_ENABLE"
)
FAILED = ("nccl-internal", "nccl-system-error", "nccl-usage", "nccl-topology", "nccl-no-transport", "nccl-setting-faulty")


def _settings(scene: Scene) -> dict[str, str]:
    """NCCL_* names without the prefix, with their values: as NCCL printed them, or as the environment was given."""
    found = {event.captured["name"].removeprefix("NCCL_"): event.captured.get("value", "") for event in lines(scene, "nccl-setting")}
    for given in scene.facts.of(Given):
        if given.name.startswith("env.NCCL_"):
            found.setdefault(given.name.removeprefix("env.NCCL_"), given.value)
    return found


def _unusual(scene: Scene) -> dict[str, str]:
    settings = _settings(scene)
    odd = {name: value for name, value in settings.items() if not USUAL.fullmatch(name)}
    off = [name for name in ("P2P_DISABLE", "SHM_DISABLE", "IB_DISABLE") if settings.get(name, "0").rstrip(".") == "1"]
    timeout = settings.get("IB_TIMEOUT", "20").rstrip(".")
    if {"P2P_DISABLE", "SHM_DISABLE"} <= set(off):
        odd.update(dict.fromkeys(off, "1"))
    if timeout.isdigit() and not 10 <= int(timeout) <= 25:
        odd["IB_TIMEOUT"] = timeout
    return odd


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, *SHOWS)
    odd, settings = _unusual(scene), _settings(scene)
    if heard is not None:
        yield from weigh_told(scene, heard)
    if failed_of_something_else(scene):
        return
    if odd and (heard is not None or lines(scene, *FAILED)):
        said = listed([f"NCCL_{name}={value}" for name, value in list(odd.items())[:4]])
        yield weighing(13, "environment-and-limits", f"Unusual settings are in force: {said}", *lines(scene, "nccl-setting")[:4])
    truncated = lines(scene, "nccl-truncated")
    if truncated and heard is None:
        yield weighing(
            13 if odd else 10,
            "suspects-log",
            f"The ranks do not agree on what they send, as under different settings: {short(truncated[0].line)}",
            truncated[0],
        )
    if "SOCKET_IFNAME" in settings and lines(scene, "interface-missing"):
        yield weighing(
            10, "environment-and-limits", f"NCCL_SOCKET_IFNAME={settings['SOCKET_IFNAME']} names no interface here", *lines(scene, "nccl-setting")[:1]
        )


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, odd = told(scene, WORDING, *SHOWS), _unusual(scene)
    which = listed([f"NCCL_{name}={value}" for name, value in list(odd.items())[:4]])
    if heard is not None:
        return sentence(f"A setting of NCCL's does not work here{f' ({which})' if which else ''}: {short(heard.text, 120)}")
    return sentence(f"NCCL fails under unusual settings of its own: {which or 'see NCCL_DEBUG=INFO'}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    names = [f"NCCL_{name}" for name in _unusual(scene)] or ["NCCL_ALGO", "NCCL_PROTO", "NCCL_NET", "NCCL_TOPO_FILE"]
    return (
        fix(scene, "See all settings in force", "env | grep ^NCCL_; cat /etc/nccl.conf ~/.nccl.conf", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV torchrun …"),
        fix(scene, "Take them away", f"unset {' '.join(names[:6])}"),
    )


CAUSE = readied(
    Cause(
        id="nccl-env-misconfig",
        title="A setting of NCCL's breaks the job",
        means="One of the job's own NCCL settings breaks it.",
        telling="NCCL's words about a setting, or unusual NCCL_* values in the environment or nccl.conf; it works without them.",
        modes=("crash", "hang"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="run once without any NCCL_* variable and with an empty nccl.conf",
        accounts_for=("user-exception", "native-crash"),
        wording=WORDING,
    ),
    Signs(
        says=("has settings of NCCL that the others do not have or that do harm", "have settings of NCCL that do harm"),
        checks=("plan.debugenv", "plan.names", "plan.rename"),
        values=("env.NCCL_", "nccl.conf", "nccl.conf."),
        but=("env.NCCL_SOCKET_IFNAME",),
    ),
)
