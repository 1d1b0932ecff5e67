"""The output of `nvidia-smi -q -x` as rows. It asks NVML in a child that can be killed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Dict, List, NamedTuple, Optional, Tuple

HARD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")


class Gpu(NamedTuple):
    """One GPU. Numbers that it does not tell are None, texts that it does not tell are "".
    Memory in MiB, clocks in MHz, temperature in °C.
    """

    bus: str
    name: str
    uuid: str
    persistence: str
    recovery: str
    fabric: Tuple[str, str]
    uncorrected: Optional[int]
    aggregate_exceeded: bool
    remap_pending: bool
    remap_failed: bool
    throttled: List[str]
    clock: Optional[int]
    clock_most: Optional[int]
    temperature: Optional[int]
    width: Optional[int]
    width_most: Optional[int]
    memory: Optional[int]
    used: Optional[int]
    processes: List[int]
    compute_mode: str
    mig: str


class Answer(NamedTuple):
    driver: str
    cuda: str
    gpus: List[Gpu]


def parse(text: str) -> Answer:
    """Raises ValueError for what is no such document."""
    try:
        top = ET.fromstring(text[text.index("<nvidia_smi_log>") :])  # noqa: S314 - as above
    except (ET.ParseError, ValueError) as error:
        raise ValueError(f"nvidia-smi printed something else: {text.strip()[:200]}") from error
    return Answer(
        _text(top, "driver_version"),
        _text(top, "cuda_version"),
        [_gpu(row) for row in top.findall("gpu")[:64]],
    )


def _gpu(row: ET.Element) -> Gpu:
    reasons = row.find("clocks_event_reasons")
    # the name before driver 535.54.03
    reasons = reasons if reasons is not None else row.find("clocks_throttle_reasons")
    active = (
        [
            re.sub(r"^clocks_(?:event|throttle)_reason_", "", item.tag)
            for item in reasons
            if (item.text or "").strip() == "Active"
        ]
        if reasons is not None
        else []
    )
    volatile = row.find("ecc_errors/volatile")
    counts = (
        [_number(item.text) for item in volatile if "uncorrectable" in item.tag]
        if volatile is not None
        else []
    )
    known = [count for count in counts if count is not None]
    return Gpu(
        bus=row.get("id", ""),
        name=_text(row, "product_name"),
        uuid=_text(row, "uuid"),
        persistence=_text(row, "persistence_mode"),
        recovery=_text(row, "gpu_recovery_action"),
        fabric=(_text(row, "fabric/state"), _text(row, "fabric/status")),
        uncorrected=sum(known) if known else None,
        aggregate_exceeded=_text(row, "ecc_errors/aggregate/sram_threshold_exceeded") == "Yes",
        remap_pending=_text(row, "remapped_rows/remapped_row_pending") == "Yes",
        remap_failed=_text(row, "remapped_rows/remapped_row_failure") == "Yes",
        throttled=[name for name in active if name in HARD],
        clock=_of(row, "applications_clocks/graphics_clock"),
        clock_most=_of(row, "default_applications_clocks/graphics_clock"),
        temperature=_of(row, "temperature/gpu_temp"),
        width=_of(row, "pci/pci_gpu_link_info/link_widths/current_link_width"),
        width_most=_of(row, "pci/pci_gpu_link_info/link_widths/max_link_width"),
        memory=_of(row, "fb_memory_usage/total"),
        used=_of(row, "fb_memory_usage/used"),
        processes=[
            number
            for item in row.findall("processes/process_info/pid")
            for number in [_number(item.text)]
            if number is not None
        ],
        compute_mode=_text(row, "compute_mode"),
        mig=_text(row, "mig_mode/current_mig"),
    )


def _text(row: ET.Element, path: str) -> str:
    text = (row.findtext(path) or "").strip()
    return (
        "" if text in ("N/A", "[N/A]") or text.startswith("Requested functionality") else text[:120]
    )


def _of(row: ET.Element, path: str) -> Optional[int]:
    return _number(row.findtext(path))


def _number(text: Optional[str]) -> Optional[int]:
    found = re.match(r"\s*(-?\d{1,15})", text or "")
    return int(found[1]) if found else None


def links(text: str) -> Dict[int, Tuple[int, int]]:
    """Parse `nvidia-smi nvlink -s`: {GPU: (links up, links down)}, without GPUs that have none."""
    found: Dict[int, Tuple[int, int]] = {}
    gpu = -1
    for line in text.splitlines():
        head = re.match(r"GPU (\d+):", line.strip())
        gpu = int(head[1]) if head else gpu
        link = re.match(r"Link \d+: (.+)", line.strip())
        if link and gpu >= 0:
            up, down = found.get(gpu, (0, 0))
            inactive = "inactive" in link[1].lower()
            found[gpu] = (up + (not inactive), down + inactive)
    return found
