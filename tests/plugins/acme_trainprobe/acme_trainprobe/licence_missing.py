"""The solver finds no licence."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.api import Cause, Fix, HostCheck, Scene, Weighing


def _check(scene: Scene) -> HostCheck | None:
    return next(
        (check for check in scene.facts.of(HostCheck) if check.name == "acme_licence"), None
    )


def weigh(scene: Scene) -> Iterator[Weighing]:
    """The probe's own check decides it; where it was not made, nothing is said."""
    check = _check(scene)
    if check is None:
        return
    if check.status == "fail" and scene.group.probe in ("acme_licence", "user_script"):
        yield Weighing(
            26, "environment-and-limits", f"The licence check failed: {check.says}", check.evidence
        )
    elif check.status == "ok":
        yield Weighing(-26, "environment-and-limits", "The licence check passed.", check.evidence)


def summary(scene: Scene) -> str:
    """Say which path was looked at."""
    check = _check(scene)
    return (
        f"The solver has no licence: {check.value} is not there."
        if check is not None
        else "The solver has no licence."
    )


def fixes(scene: Scene) -> tuple[Fix, ...]:
    """One thing to do."""
    del scene
    return (
        Fix(
            "Point ACME_LICENCE at the site's licence file.",
            ("export ACME_LICENCE=/site/acme/licence",),
            verify="trainprobe diagnose --only acme_licence",
        ),
    )


CAUSE = Cause(
    id="acme-licence-missing",
    title="The solver finds no licence",
    means="The solver starts without a licence and stops at its first step.",
    telling="The probe acme_licence finds no file where the solver looks for it.",
    modes=("check", "crash"),
    weigh=weigh,
    summary=summary,
    fixes=fixes,
    would_settle="trainprobe diagnose --only acme_licence",
    ranks=lambda scene: (),  # noqa: ARG005 - the fault is the host's
)
