"""The script's body runs again in every process that spawn starts.

Spawn imports the main script in the child. Without `if __name__ == "__main__":` the child starts
the training once more, and Python stops it with a message about the bootstrapping phase.

It is recognised by that message; by frames of a start below the import of the main script; weakly
by a pipe that breaks while a worker is handed to its new process, which has died of it. In a
notebook it more often died of an object that it could not load (`unpicklable-dataset`).
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.process_starts import child_died, in_notebook, started_by_import
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import weigh_message
from trainprobe.signatures.messages import message
from trainprobe.stacks.places import is_user

WORDING = message("missing-main-guard")


def _weigh(scene: Scene) -> Weighings:
    if (yield from weigh_message(scene, WORDING)) is not None:
        return
    if child_died(scene) and not in_notebook(scene):
        says = (
            "The new process had died before it was handed its worker, as it does where it starts"
            " the script again"
        )
        yield weighing(13, "suspects-log", says, scene.origin)
        own = next(filter(is_user, scene.origin.frames), None) if scene.origin is not None else None
        if own is not None and own.name == "<module>":
            says = f"{own.where} starts it at the top level of the script"
            yield weighing(10, "suspects-stack", says, scene.origin)
    elif (start := started_by_import(scene)) is not None:
        says = (
            f"A process that spawn had started ran {start.where} as it imported the script, and"
            " started processes there"
        )
        yield weighing(26, "suspects-stack", says, scene.origin)


def _summary(scene: Scene) -> str:
    script = scene.plan.script.rsplit("/", 1)[-1] or "The script"
    return f"{script} starts processes by spawn while it is imported, because it has no main guard"


def _fixes(scene: Scene) -> Fixes:
    script = scene.plan.script or "the script"
    return (
        fix(
            "Put the start behind a guard",
            f"in {script}: move the body into main() and end with: if __name__ == '__main__':"
            " main()",
        ),
    )


CAUSE = Cause(
    id="missing-main-guard",
    title="The script has no main guard",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="grep -n __main__ in the script",
    refines="user-exception",
    accounts_for=("data-worker-crash",),  # whose worker died of it
    wording=WORDING,
)
