"""The driver's library and its kernel module are of different versions.

A package update replaced the library while the old module was still loaded, or a container brings a
library of another driver. nvidia-smi and every CUDA program fail until the two are the same again.

It is recognised by "Driver/library version mismatch", by CUDA's errors 803 and 804, and by the
kernel's "API mismatch". Error 804 alone may also mean a container whose CUDA is newer than a driver
that cannot be bridged.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.signs import confirmed, failed_check, filled, first_of, quoted, stated
from trainprobe.causes.statements import first_to_fail, quote, statement
from trainprobe.signatures.messages import message

WORDING = message("driver-library-mismatch")
COMPATIBILITY = message("driver-library-mismatch.compatibility")
UNKNOWN = message("driver-library-mismatch.unknown")
BROKEN = message("driver-library-mismatch.broken")
VERSIONS = re.compile(
    r"(?:client has the version|NVML library version:?|DSO version) (\d[\d.]+)|(?:kernel"
    r" (?:module|version)[^\d\n]{0,40}) ?(\d[\d.]+)"
)


def _newer_library(scene: Scene) -> Weighings:
    found = statement(scene, COMPATIBILITY)
    if found is not None:
        yield quote(13, "The library is newer than the kernel's module", found)
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    found = statement(scene, WORDING) or statement(scene, COMPATIBILITY)
    if found is None:
        return filled(
            "The NVIDIA driver does not start on this node: its kernel module is missing or does"
            " not match its library{quoted}",
            BROKEN,
            UNKNOWN,
            limit=100,
        )(scene)
    versions = dict.fromkeys(one or other for one, other in VERSIONS.findall(found.text))
    shown = f" ({' and '.join(versions)})" if versions else ""
    return (
        f"The NVIDIA driver's library and its kernel module have different versions{shown}, so no"
        " CUDA program can start on this node"
    )


CAUSE = Cause(
    id="driver-library-mismatch",
    title="The driver's library and kernel module differ",
    weigh=confirmed(
        first_of(
            stated(WORDING, log_points=26),
            _newer_library,
            quoted(10, "The driver does not start", BROKEN),
            quoted(6, "NVML cannot reach the driver", UNKNOWN),
        ),
        failed_check("drv.versions"),
    ),
    summary=_summary,
    fixes=fixes("""
        Compare the two
            cat /proc/driver/nvidia/version   (the module)
            ldconfig -p | grep -E 'libcuda.so|libnvidia-ml'   (the library)
            verify: nvidia-smi
        [admin] Reboot the node, or reload the module
            sudo reboot, or: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe
                nvidia nvidia_uvm
            verify: nvidia-smi
        In a container, leave CUDA's own compat library out
            LD_LIBRARY_PATH without /usr/local/cuda/compat
            verify: nvidia-smi
    """),
    ranks=nobody,
    would_settle=(
        "nvidia-smi, and cat /proc/driver/nvidia/version beside the version in the name of"
        " libcuda.so"
    ),
    refines="user-exception",
    accounts_for=("native-crash",),
    wording=f"{WORDING}|{COMPATIBILITY}",
    ready=ReadySigns(
        says=("has a driver unlike its libraries", "have drivers unlike their libraries"),
        checks=("drv.module",),
    ),
)
