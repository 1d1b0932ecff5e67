"""The driver's library and its kernel module are of different versions.

A package update replaced the library while the old module was still loaded, or a container brings a
library of another driver. nvidia-smi and every CUDA program fail until the two are the same again.

It is recognised by "Driver/library version mismatch", by CUDA's errors 803 and 804, and by the
kernel's "API mismatch". Error 804 alone may also mean a container whose CUDA is newer than a driver
that cannot be bridged.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, Signs, nobody
from trainprobe.causes.phrases import admin_fix, fix, short
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.statements import checked, first_to_fail, quote, statement, weigh_statement
from trainprobe.signatures.messages import message

WORDING = message("driver-library-mismatch")
COMPATIBILITY = message("driver-library-mismatch.compatibility")
UNKNOWN = r"Failed to initialize NVML: Unknown Error"
BROKEN = message("driver-library-mismatch.broken")
VERSIONS = re.compile(
    r"(?:client has the version|NVML library version:?|DSO version) (\d[\d.]+)|(?:kernel"
    r" (?:module|version)[^\d\n]{0,40}) ?(\d[\d.]+)"
)
CHECK = "drv.versions"


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    compatibility = statement(scene, COMPATIBILITY)
    unknown = statement(scene, UNKNOWN)
    if heard is not None:
        yield from weigh_statement(scene, WORDING, log_points=26)
        yield from first_to_fail(scene)
    elif compatibility is not None:
        yield quote(13, "The library is newer than the kernel's module", compatibility)
        yield from first_to_fail(scene)
    elif (broken := statement(scene, BROKEN)) is not None:
        yield quote(10, "The driver does not start", broken)
    elif unknown is not None:
        yield quote(6, "NVML cannot reach the driver", unknown)
    else:
        return
    yield from checked(scene, CHECK, corroborates=True)


def _summary(scene: Scene) -> str:
    heard = statement(scene, WORDING) or statement(scene, COMPATIBILITY)
    if heard is None:
        broken = statement(scene, BROKEN) or statement(scene, UNKNOWN)
        says = f": {short(broken.text, 100)}" if broken is not None else ""
        return (
            "The NVIDIA driver does not start on this node, as when its kernel module is missing"
            f" or not its library's{says}"
        )
    versions = [one or other for one, other in VERSIONS.findall(heard.text)]
    shown = f" ({' and '.join(dict.fromkeys(versions))})" if versions else ""
    return (
        f"The NVIDIA driver's library and its kernel module are of different versions{shown}, so no"
        " CUDA program can start on this node"
    )


CAUSE = Cause(
    id="driver-library-mismatch",
    title="The driver's library and kernel module differ",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=(
        fix(
            "Compare the two",
            "cat /proc/driver/nvidia/version   (the module)",
            "ldconfig -p | grep -E 'libcuda.so|libnvidia-ml'   (the library)",
            verify="nvidia-smi",
        ),
        admin_fix(
            "Reboot the node, or reload the module",
            "sudo reboot, or: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo"
            " modprobe nvidia nvidia_uvm",
            verify="nvidia-smi",
        ),
        fix(
            "In a container, leave CUDA's own compat library out",
            "LD_LIBRARY_PATH without /usr/local/cuda/compat",
            verify="nvidia-smi",
        ),
    ),
    ranks=nobody,
    would_settle=(
        "nvidia-smi, and cat /proc/driver/nvidia/version beside the version in the name of"
        " libcuda.so"
    ),
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{COMPATIBILITY}",
    ready=Signs(
        says=(
            "has a driver that does not fit its libraries",
            "have drivers that do not fit their libraries",
        ),
        checks=("drv.module",),
    ),
)
