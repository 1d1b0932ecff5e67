"""The user's own factories of data and models that fail in a child of a probe."""

from __future__ import annotations

from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.facts import ProbeFailure

OBJECTS = {
    "model": "The model",
    "sample": "The sample",
    "dataset": "The data",
    "collate": "The collate function",
}


def broken(scene: Scene, kind: str) -> ProbeFailure | None:
    """The first failure of this kind (raised, nonsense, stood, died) of a named object."""
    found = scene.of(ProbeFailure)
    return first_found(
        fact
        for fact in found
        if fact.details.get("given") in OBJECTS and fact.details.get("kind") == kind
    )


def killed_by(failure: ProbeFailure | None) -> str:
    """The signal of which its process died, such as SIGSEGV; empty where it left by itself."""
    signal = failure.details.get("signal") if failure is not None else None
    return signal if isinstance(signal, str) else ""


def weigh_broken(failure: ProbeFailure | None, points: int) -> Weighings:
    if failure is not None:
        yield weighing(points, "probe-outcome", failure.says.rstrip("."), failure)
