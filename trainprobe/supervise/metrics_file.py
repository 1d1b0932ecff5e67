"""A file for Prometheus' textfile collector, or any reader of OpenMetrics names: how the job does
now.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

EVERY_S = 15.0

Samples = Sequence[tuple[Mapping[str, str], float]]
# name: (type, what it says)
NAMES: Mapping[str, tuple[str, str]] = {
    "run_up": ("gauge", "1 while the job runs."),
    "run_ranks": ("gauge", "Ranks of the job on this host."),
    "run_stalled": ("gauge", "1 while a stall that was reported goes on."),
    "run_stalled_seconds": ("gauge", "For how long that has gone on."),
    "run_alarms_total": ("counter", "Stalls that were reported."),
    "run_looks_total": ("counter", "Looks at the job."),
    "run_looks_cpu_seconds_total": ("counter", "Processor time that looks took."),
    "run_cpu_seconds_total": ("counter", "Processor time that the supervisor took."),
    "run_step": ("gauge", "The newest step that each rank has said."),
    "run_step_seconds": ("gauge", "The median time of the newest steps."),
    "run_straggler_late_seconds": (
        "gauge",
        "For how long the others wait for this rank in each step.",
    ),
    "run_update_timestamp_seconds": ("gauge", "When this was written, as Unix time."),
}


def metrics_text(values: Mapping[str, Samples]) -> str:
    """Return the samples as text, in the order of NAMES; what has none is left out."""
    lines: list[str] = []
    for name, (kind, says) in NAMES.items():
        samples = values.get(name) or ()
        if samples:
            full = f"trainprobe_{name}"
            lines += [f"# HELP {full} {says}", f"# TYPE {full} {kind}"]
            lines += [f"{full}{_braced(labels)} {value:.10g}" for labels, value in samples]
    return "".join(f"{line}\n" for line in lines)


def write_metrics(path: str, values: Mapping[str, Samples]) -> None:
    """Replace the file as a whole: it is read at any moment. A full disk costs the job nothing."""
    fresh = f"{path}.{os.getpid()}.new"
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(metrics_text(values))
        os.replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(fresh)


def _braced(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
