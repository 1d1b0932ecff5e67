"""The verdicts on what the driver said of its GPUs. Pure: they are given rows and say checks."""

from __future__ import annotations

from typing import Callable, Dict, List, Tuple

from _devices.smi import Answer, Gpu
from _ready import checking

Rows = List[Gpu]
OWN_MIB = 1024  # what driver and services hold by themselves stays below


def each(told: checking.Told, check: str, gpus: Rows, wrong: Callable[[Gpu], str], fix: str, *, state: str = "fail", fine: str = "none") -> None:
    """Say one check: `wrong` gives what is wrong with a GPU, "" where nothing is."""
    bad = [f"GPU {place} ({gpu.bus}) {what}" for place, gpu in enumerate(gpus) for what in [wrong(gpu)] if what]
    told.say(check, state if bad else "ok", f"{'; '.join(bad) if bad else fine}.", bad, fix=fix)


def health(answer: Answer, told: checking.Told) -> None:
    """What the driver itself knows to be wrong."""
    gpus = answer.gpus
    each(
        told,
        "drv.persist",
        gpus,
        lambda gpu: "has persistence mode off" if gpu.persistence == "Disabled" else "",
        "sudo systemctl enable --now nvidia-persistenced",
        state="warn",
        fine="Persistence mode is on",
    )
    each(
        told,
        "drv.recovery",
        gpus,
        lambda gpu: f"asks for: {gpu.recovery}" if gpu.recovery not in ("", "None") else "",
        "drain the node, then do what the driver asks for",
        fine="The driver asks for no recovery",
    )
    each(
        told, "drv.ecc", gpus, _ecc, "sudo nvidia-smi --gpu-reset -i N; RMA where it comes back", fine="No uncorrected memory error since the driver was loaded"
    )
    each(told, "drv.remap", gpus, _remap, "sudo nvidia-smi --gpu-reset -i N; RMA on a failure", fine="No row remapping is pending or has failed")
    fabric = [gpu for gpu in gpus if gpu.fabric[0]]
    if fabric:
        each(told, "drv.fm", fabric, _fabric, "sudo systemctl restart nvidia-fabricmanager, of the driver's version", fine="The NVLink fabric is set up")
    else:
        told.say("drv.fm", "skip", "These GPUs have no NVLink fabric that a manager sets up.")
    each(told, "drv.mode", gpus, _mode(gpus), "sudo nvidia-smi -c DEFAULT; sudo nvidia-smi -mig 0", fine="Compute mode is default, MIG alike on all")


def _ecc(gpu: Gpu) -> str:
    return (
        f"has {gpu.uncorrected} uncorrected memory errors" if gpu.uncorrected else "has more errors of its SRAM than allowed" if gpu.aggregate_exceeded else ""
    )


def _remap(gpu: Gpu) -> str:
    return "could not remap a row" if gpu.remap_failed else "waits for a reset to remap a row" if gpu.remap_pending else ""


def _fabric(gpu: Gpu) -> str:
    state, status = gpu.fabric
    return "" if state == "Completed" and status in ("", "Success") else f"has its fabric {state or 'unknown'}, {status or 'without a status'}"


def _mode(gpus: Rows) -> Callable[[Gpu], str]:
    kinds = {gpu.mig for gpu in gpus}
    most = max(kinds, key=lambda kind: sum(gpu.mig == kind for gpu in gpus), default="")

    def wrong(gpu: Gpu) -> str:
        return (
            "is in prohibited mode"
            if gpu.compute_mode == "Prohibited"
            else f"has MIG {gpu.mig or 'untold'}, others {most or 'untold'}"
            if gpu.mig != most
            else ""
        )

    return wrong


def pace(answer: Answer, told: checking.Told) -> None:
    """What makes a GPU slow."""
    gpus, hot = answer.gpus, told.threshold("drv.temp", 75.0)
    each(
        told,
        "drv.throttle",
        gpus,
        lambda gpu: f"is slowed down: {', '.join(gpu.throttled)}" if gpu.throttled else "",
        "look at cooling and power supplies; drain the node",
        fine="No GPU is slowed down by heat or power",
    )
    fastest = max((gpu.clock for gpu in gpus if gpu.clock), default=0)
    least = told.threshold("drv.clocks", 0.95)
    each(
        told,
        "drv.clocks",
        gpus,
        lambda gpu: (
            f"is set to {gpu.clock} MHz, others to {max(fastest, gpu.clock_most or 0)}"
            if gpu.clock and gpu.clock < least * max(fastest, gpu.clock_most or 0)
            else ""
        ),
        "sudo nvidia-smi -rac -rgc",
        fine="No GPU is locked to a low clock",
    )
    each(
        told,
        "drv.temp",
        gpus,
        lambda gpu: f"has {gpu.temperature} °C" if gpu.temperature and gpu.temperature > hot and not gpu.processes else "",
        "look at fans and air flow",
        state="warn",
        fine="No idle GPU is hot",
    )
    each(
        told,
        "drv.pcie",
        gpus,
        lambda gpu: f"runs at x{gpu.width} of x{gpu.width_most}" if gpu.width and gpu.width_most and gpu.width < gpu.width_most else "",
        "reseat the card; look at the BIOS and riser; drain the node",
        fine="All PCIe links have their full width",
    )


def held(answer: Answer, told: checking.Told, mine: Callable[[int], bool]) -> None:
    """Memory of GPUs that others hold: `mine` tells a process of this job."""
    share = told.threshold("drv.memused", 0.02)

    def wrong(gpu: Gpu) -> str:
        if gpu.used is None or not gpu.memory or gpu.used <= max(OWN_MIB, share * gpu.memory) or (gpu.processes and all(map(mine, gpu.processes))):
            return ""
        return f"has {gpu.used} MiB in use by {'pids ' + ' '.join(map(str, gpu.processes[:8])) if gpu.processes else 'processes that we do not see'}"

    each(
        told,
        "drv.memused",
        answer.gpus,
        wrong,
        "end the processes that are named: ps -o pid,user,etime,cmd -p PID",
        fine="No one else holds the memory of a GPU",
    )


def nvlinks(found: Dict[int, Tuple[int, int]], told: checking.Told) -> None:
    """Links that are down where the same GPU, or most others, have them up; a card without a bridge has none up and is left out."""
    most = max((up for up, _ in found.values()), default=0)
    if not most:
        told.say("drv.nvlink", "skip", "No NVLink is up on any GPU: these are cards without it, or without a bridge.")
        return
    bad = [f"GPU {gpu} has {up} of {most} NVLinks up" for gpu, (up, _) in sorted(found.items()) if up < most]
    told.say(
        "drv.nvlink",
        "fail" if bad else "ok",
        f"NVLinks: {'; '.join(bad) or f'{most} are up on each of {len(found)} GPUs'}.",
        bad,
        fix="sudo nvidia-smi --gpu-reset; drain the node",
    )
