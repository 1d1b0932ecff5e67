"""One of the job's own NCCL settings breaks it.

NCCL_* variables that helped on another machine, or a forgotten /etc/nccl.conf: an algorithm that
does not exist here, a topology file that is not there, a network plugin that is not installed, all
ways between two GPUs switched off.

It is recognised by NCCL's words about a setting, and (weaker) by unusual NCCL_* values beside a
failure that names no other reason.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    failed_of_something_else,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote
from trainprobe.facts import Given
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("nccl-env-misconfig")
SHOWS = ("nccl-setting-faulty", "nccl-no-transport")
# Settings that many working jobs have. `P2P_DISABLE` and the like are bridges that people leave
# behind, and slow, but rarely wrong.
USUAL = re.compile(
    r"DEBUG\w*|SOCKET_IFNAME|IB_(?:HCA|DISABLE|GID_INDEX|TC|SL|TIMEOUT|RETRY_CNT"
    r"|QPS_PER_CONNECTION|CUDA_SUPPORT|PCI_RELAXED_ORDERING)|NET_GDR_\w+|ASYNC_ERROR_HANDLING"
    r"|BLOCKING_WAIT|NVLS_ENABLE|P2P_DISABLE|P2P_LEVEL|SHM_DISABLE|CROSS_NIC|MIN_NCHANNELS"
    r"|LAUNCH_MODE|CUMEM_ENABLE"
)
FAILED = (
    "nccl-internal",
    "nccl-system-error",
    "nccl-usage",
    "nccl-topology",
    "nccl-no-transport",
    "nccl-setting-faulty",
)


def _settings(scene: Scene) -> dict[str, str]:
    """NCCL_* settings without the prefix, as NCCL printed them or as they were set."""
    found = {
        event.captured["name"].removeprefix("NCCL_"): event.captured.get("value", "")
        for event in lines(scene, "nccl-setting")
    }
    for given in scene.facts.of(Given):
        if given.name.startswith("env.NCCL_"):
            found.setdefault(given.name.removeprefix("env.NCCL_"), given.value)
    return found


def _unusual(scene: Scene) -> dict[str, str]:
    settings = _settings(scene)
    odd = {name: value for name, value in settings.items() if not USUAL.fullmatch(name)}
    off = [
        name
        for name in ("P2P_DISABLE", "SHM_DISABLE", "IB_DISABLE")
        if settings.get(name, "0").rstrip(".") == "1"
    ]
    timeout = settings.get("IB_TIMEOUT", "20").rstrip(".")
    if {"P2P_DISABLE", "SHM_DISABLE"} <= set(off):
        odd.update(dict.fromkeys(off, "1"))
    if timeout.isdecimal() and not 10 <= int(timeout) <= 25:
        odd["IB_TIMEOUT"] = timeout
    return odd


def _weigh(scene: Scene) -> Weighings:
    found = startup_failure(scene, WORDING, *SHOWS)
    odd, settings = _unusual(scene), _settings(scene)
    if found is not None:
        yield from weigh_startup_failure(scene, found)
    if failed_of_something_else(scene):
        return
    if odd and (found is not None or lines(scene, *FAILED)):
        printed = and_list([f"NCCL_{name}={value}" for name, value in list(odd.items())[:4]])
        says = f"Unusual settings are in force: {printed}"
        yield weighing(13, "environment-and-limits", says, *lines(scene, "nccl-setting")[:4])
    truncated = lines(scene, "nccl-truncated")
    if truncated and found is None:
        says = "The ranks do not agree on what they send, as under different settings"
        yield quote(13 if odd else 10, says, truncated[0])
    if "SOCKET_IFNAME" in settings and lines(scene, "interface-missing"):
        says = f"NCCL_SOCKET_IFNAME={settings['SOCKET_IFNAME']} names no interface here"
        yield weighing(10, "environment-and-limits", says, *lines(scene, "nccl-setting")[:1])


def _summary(scene: Scene) -> str:
    found, odd = startup_failure(scene, WORDING, *SHOWS), _unusual(scene)
    which = and_list([f"NCCL_{name}={value}" for name, value in list(odd.items())[:4]])
    if found is not None:
        return (
            f"A setting of NCCL's does not work here{f' ({which})' if which else ''}:"
            f" {short(found.text, 120)}"
        )
    return f"NCCL fails under unusual settings of its own: {which or 'see NCCL_DEBUG=INFO'}"


def _fixes(scene: Scene) -> Fixes:
    names = [f"NCCL_{name}" for name in _unusual(scene)] or [
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_NET",
        "NCCL_TOPO_FILE",
    ]
    return (
        fix(
            "See all settings in force",
            "env | grep ^NCCL_; cat /etc/nccl.conf ~/.nccl.conf",
            "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ENV torchrun …",
        ),
        fix("Take them away", f"unset {' '.join(names[:6])}"),
    )


CAUSE = Cause(
    id="nccl-env-misconfig",
    title="A setting of NCCL's breaks the job",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="run once without any NCCL_* variable and with an empty nccl.conf",
    accounts_for=("user-exception", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("has other or harmful NCCL settings", "have harmful NCCL settings"),
        checks=("plan.debugenv", "plan.names", "plan.rename"),
        values=("env.NCCL_", "nccl.conf", "nccl.conf."),
        but=("env.NCCL_SOCKET_IFNAME",),
    ),
)
