"""The script's body runs again in every process that spawn starts.

Spawn imports the main script in the child. Without `if __name__ == "__main__":` the child starts the training once more, and Python stops it
with a message about the bootstrapping phase.

It is recognised by that message; weakly by a pipe that breaks while a worker is handed to its new process, which has died of it. In a
notebook it more often died of an object that it could not load (`unpicklable-dataset`).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.process_starts import child_died, in_notebook
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# multiprocessing/spawn.py, _check_not_importing_main(). The words are broken over lines there.
WORDING = r"before the\s+current process has finished its bootstrapping phase|finished its bootstrapping phase|An attempt has been made to start a new process before the"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if said(scene, WORDING) is not None:
        yield from spoken(scene, WORDING)
        yield from first_to_fail(scene)
    elif child_died(scene) and not in_notebook(scene):
        yield weighing(
            13, "suspects-log", "The new process had died before it was handed its worker, as it does where it starts the script again", scene.origin
        )


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    script = scene.plan.script.rsplit("/", 1)[-1] or "The script"
    return sentence(f"{script} starts processes by spawn while it is imported, because it has no main guard")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    script = scene.plan.script or "the script"
    return (fix(scene, "Put the start behind a guard", f"in {script}: move the body into main() and end with: if __name__ == '__main__': main()"),)


CAUSE = Cause(
    id="missing-main-guard",
    title="The script has no main guard",
    means="The script starts processes by spawn, and its body runs again in each of them.",
    telling="The message that a process was started before the current one had finished its bootstrapping phase.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="grep -n __main__ in the script",
    refines="user-exception",
    accounts_for=("data-worker-crash",),  # whose worker died of it
    wording=WORDING,
)
