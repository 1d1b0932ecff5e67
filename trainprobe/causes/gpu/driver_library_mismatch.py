"""The driver's library and its kernel module are of different versions.

A package update replaced the library while the old module was still loaded, or a container brings a library of another driver. nvidia-smi and every
CUDA program fail until the two are the same again.

It is recognised by "Driver/library version mismatch", by CUDA's errors 803 and 804, and by the kernel's "API mismatch". Error 804 alone may also
mean a container whose CUDA is newer than a driver that cannot be bridged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# NVML; the CUDA runtime's cudaErrorSystemDriverMismatch (803); the kernel module's own line.
WORDING = (
    r"[Dd]river/library version mismatch|unsupported display driver / cuda driver combination|cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
    r"|kernel version [\d.]+ does not match DSO version|API mismatch: the client has the version"
    r"|couldn't communicate with the NVIDIA driver"
)
COMPATIBILITY = r"forward compatibility was attempted on non supported HW|cudaErrorCompatNotSupportedOnDevice|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
UNKNOWN = r"Failed to initialize NVML: Unknown Error"
BROKEN = r"CUDA unknown error - this may be due to|CUDA driver initialization failed, you might not have"  # errors 999 and 3: nvidia_uvm not there, or ill
VERSIONS = re.compile(r"(?:client has the version|NVML library version:?|DSO version) (\d[\d.]+)|(?:kernel (?:module|version)[^\d\n]{0,40}) ?(\d[\d.]+)")
CHECK = "drv.versions"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, compatibility, unknown = said(scene, WORDING), said(scene, COMPATIBILITY), said(scene, UNKNOWN)
    if heard is not None:
        yield from spoken(scene, WORDING, log_points=26)
        yield from first_to_fail(scene)
    elif compatibility is not None:
        yield weighing(13, "suspects-log", f"The library is newer than the kernel's module: {short(compatibility.text, 120)}", compatibility.fact)
        yield from first_to_fail(scene)
    elif (broken := said(scene, BROKEN)) is not None:
        yield weighing(10, "suspects-log", f"The driver does not start: {short(broken.text, 120)}", broken.fact)
    elif unknown is not None:
        yield weighing(6, "suspects-log", f"NVML cannot reach the driver: {short(unknown.text, 100)}", unknown.fact)
    else:
        return
    yield from checked(scene, CHECK, corroborates=True)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, COMPATIBILITY)
    if heard is None:
        broken = said(scene, BROKEN) or said(scene, UNKNOWN)
        says = f": {short(broken.text, 100)}" if broken is not None else ""
        return sentence(f"The NVIDIA driver does not start on this node, as when its kernel module is missing or not its library's{says}")
    versions = [one or other for one, other in VERSIONS.findall(heard.text)]
    shown = f" ({' and '.join(dict.fromkeys(versions))})" if versions else ""
    return sentence(f"The NVIDIA driver's library and its kernel module are of different versions{shown}, so no CUDA program can start on this node")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "Compare the two",
            "cat /proc/driver/nvidia/version   (the module)",
            "ldconfig -p | grep -E 'libcuda.so|libnvidia-ml'   (the library)",
            verify="nvidia-smi",
        ),
        fix(
            scene,
            "Reboot the node, or reload the module",
            "sudo reboot, or: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia nvidia_uvm",
            risk="needs-admin",
            who="admin",
            verify="nvidia-smi",
        ),
        fix(scene, "In a container, leave CUDA's own compat library out", "LD_LIBRARY_PATH without /usr/local/cuda/compat", verify="nvidia-smi"),
    )


CAUSE = readied(
    Cause(
        id="driver-library-mismatch",
        title="The driver's library and kernel module differ",
        means="The driver's library and its kernel module are of different versions.",
        telling="Driver/library version mismatch, or CUDA error 803.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="nvidia-smi, and cat /proc/driver/nvidia/version beside the version in the name of libcuda.so",
        refines="user-exception",
        accounts_for=("native-crash",),
        wording=f"{WORDING}|{COMPATIBILITY}",
    ),
    Signs(
        says=("has a driver that does not fit its libraries", "have drivers that do not fit their libraries"),
        checks=("drv.module",),
    ),
)
