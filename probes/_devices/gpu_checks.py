"""The checks of the driver's answer about its GPUs. Pure: rows in, checks out."""

from __future__ import annotations

from typing import Callable, Dict, List, Tuple

from _devices.nvidia_smi import Answer, Gpu
from _shared import checks

Rows = List[Gpu]
# check, its state where a GPU fails it, what is wrong with a GPU ("" for nothing), fix, all is well
Row = Tuple[str, str, Callable[[Gpu], str], str, str]
OWN_MIB = 1024  # what driver and services hold by themselves stays below


def each(results: checks.Results, gpus: Rows, row: Row) -> None:
    """Report one check of every GPU."""
    check, state, wrong, fix, fine = row
    found = [(f"GPU {index} ({gpu.bus})", wrong(gpu)) for index, gpu in enumerate(gpus)]
    bad = [f"{who} {what}" for who, what in found if what]
    results.add(check, state if bad else "ok", f"{'; '.join(bad) or fine}.", bad, fix=fix)


def _health(gpus: Rows) -> List[Row]:
    """What the driver itself knows to be wrong."""
    return [
        (
            "drv.persist",
            "warn",
            lambda gpu: "has persistence mode off" if gpu.persistence == "Disabled" else "",
            "sudo systemctl enable --now nvidia-persistenced",
            "Persistence mode is on",
        ),
        (
            "drv.recovery",
            "fail",
            lambda gpu: f"asks for: {gpu.recovery}" if gpu.recovery not in ("", "None") else "",
            "drain the node, then do what the driver asks for",
            "The driver asks for no recovery",
        ),
        (
            "drv.ecc",
            "fail",
            _ecc,
            "sudo nvidia-smi --gpu-reset -i N; RMA where it comes back",
            "No uncorrected memory error since the driver was loaded",
        ),
        (
            "drv.remap",
            "fail",
            _remap,
            "sudo nvidia-smi --gpu-reset -i N; RMA on a failure",
            "No row remapping is pending or has failed",
        ),
        (
            "drv.mode",
            "fail",
            _mode(gpus),
            "sudo nvidia-smi -c DEFAULT; sudo nvidia-smi -mig 0",
            "Compute mode is default, MIG alike on all",
        ),
    ]


def health(answer: Answer, results: checks.Results) -> None:
    for row in _health(answer.gpus):
        each(results, answer.gpus, row)
    fabric = [gpu for gpu in answer.gpus if gpu.fabric[0]]
    if not fabric:
        results.add("drv.fm", "skip", "These GPUs have no NVLink fabric that a manager sets up.")
        return
    fix = "sudo systemctl restart nvidia-fabricmanager, of the driver's version"
    each(results, fabric, ("drv.fm", "fail", _fabric, fix, "The NVLink fabric is set up"))


def _ecc(gpu: Gpu) -> str:
    return (
        f"has {gpu.uncorrected} uncorrected memory errors"
        if gpu.uncorrected
        else "has more errors of its SRAM than allowed"
        if gpu.aggregate_exceeded
        else ""
    )


def _remap(gpu: Gpu) -> str:
    return (
        "could not remap a row"
        if gpu.remap_failed
        else "waits for a reset to remap a row"
        if gpu.remap_pending
        else ""
    )


def _fabric(gpu: Gpu) -> str:
    state, status = gpu.fabric
    return (
        ""
        if state == "Completed" and status in ("", "Success")
        else f"has its fabric {state or 'unknown'}, {status or 'without a status'}"
    )


def _mode(gpus: Rows) -> Callable[[Gpu], str]:
    kinds = {gpu.mig for gpu in gpus}
    most = max(kinds, key=lambda kind: sum(gpu.mig == kind for gpu in gpus), default="")

    def wrong(gpu: Gpu) -> str:
        return (
            "is in prohibited mode"
            if gpu.compute_mode == "Prohibited"
            else (
                f"has MIG {gpu.mig or 'unknown'}, others {most or 'unknown'}"
                if gpu.mig != most
                else ""
            )
        )

    return wrong


def _pace(gpus: Rows, results: checks.Results) -> List[Row]:
    """What makes a GPU slow."""
    hot, least = results.threshold("drv.temp", 75.0), results.threshold("drv.clocks", 0.95)
    fastest = max((gpu.clock for gpu in gpus if gpu.clock), default=0)

    def clocks(gpu: Gpu) -> str:
        usual = max(fastest, gpu.clock_most or 0)
        slow = gpu.clock and gpu.clock < least * usual
        return f"is set to {gpu.clock} MHz, others to {usual}" if slow else ""

    def temperature(gpu: Gpu) -> str:
        idle_and_hot = gpu.temperature and gpu.temperature > hot and not gpu.processes
        return f"has {gpu.temperature} °C" if idle_and_hot else ""

    def link(gpu: Gpu) -> str:
        narrow = gpu.width and gpu.width_most and gpu.width < gpu.width_most
        return f"runs at x{gpu.width} of x{gpu.width_most}" if narrow else ""

    return [
        (
            "drv.throttle",
            "fail",
            lambda gpu: f"is slowed down: {', '.join(gpu.throttled)}" if gpu.throttled else "",
            "look at cooling and power supplies; drain the node",
            "No GPU is slowed down by heat or power",
        ),
        (
            "drv.clocks",
            "fail",
            clocks,
            "sudo nvidia-smi -rac -rgc",
            "No GPU is locked to a low clock",
        ),
        ("drv.temp", "warn", temperature, "look at fans and air flow", "No idle GPU is hot"),
        (
            "drv.pcie",
            "fail",
            link,
            "reseat the card; look at the BIOS and riser; drain the node",
            "All PCIe links have their full width",
        ),
    ]


def pace(answer: Answer, results: checks.Results) -> None:
    for row in _pace(answer.gpus, results):
        each(results, answer.gpus, row)


def held(answer: Answer, results: checks.Results, mine: Callable[[int], bool]) -> None:
    """Memory of GPUs that others hold. `mine` says whether a pid is of this job."""
    share = results.threshold("drv.memused", 0.02)

    def wrong(gpu: Gpu) -> str:
        own = gpu.processes and all(map(mine, gpu.processes))
        least = max(OWN_MIB, share * (gpu.memory or 0))
        if gpu.used is None or not gpu.memory or gpu.used <= least or own:
            return ""
        pids = f"pids {' '.join(map(str, gpu.processes[:8]))}" if gpu.processes else ""
        return f"has {gpu.used} MiB in use by {pids or 'processes that we do not see'}"

    fix = "end these processes: ps -o pid,user,etime,cmd -p PID"
    fine = "No one else holds the memory of a GPU"
    each(results, answer.gpus, ("drv.memused", "fail", wrong, fix, fine))


def nvlinks(found: Dict[int, Tuple[int, int]], results: checks.Results) -> None:
    """Find links that are down on one GPU only; a card without a bridge is left out."""
    most = max((up for up, _ in found.values()), default=0)
    if not most:
        sentence = "No NVLink is up on any GPU: these are cards without it, or without a bridge."
        results.add("drv.nvlink", "skip", sentence)
        return
    bad = [
        f"GPU {gpu} has {up} of {most} NVLinks up"
        for gpu, (up, _) in sorted(found.items())
        if up < most
    ]
    sentence = f"NVLinks: {'; '.join(bad) or f'{most} are up on each of {len(found)} GPUs'}."
    fix = "sudo nvidia-smi --gpu-reset; drain the node"
    results.add("drv.nvlink", "fail" if bad else "ok", sentence, bad, fix=fix)
