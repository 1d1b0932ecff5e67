"""Whether a look inside the ranks (`trainprobe attach --deep`) would tell what no stack does."""

from __future__ import annotations

from trainprobe.causes.commands import live_pid
from trainprobe.causes.phrases import at_its_host, fix
from trainprobe.causes.scene import Scene
from trainprobe.facts import FlightDump
from trainprobe.model.diagnosis import Fix
from trainprobe.waits.dump_hangs import only_dumps

_WHAT_IT_DOES = (
    "it borrows one sleeping thread of each rank for about half a millisecond; the job goes on"
)


def deep_look(scene: Scene) -> Fix | None:
    """The look that tells the group and the number of every call; None where it would not help: the
    job is gone, its recorders were read or asked, or no call is what is not understood.
    """
    job, group = scene.live, scene.group
    if job is None or not job.launcher or only_dumps(job) or group.mode != "hang":
        return None
    asked = scene.looked("deep") or bool(scene.facts.refused("deep"))
    if group.how not in ("cycle", "stuck-inside") or scene.of(FlightDump) or asked:
        return None
    (look,) = at_its_host(f"trainprobe attach {live_pid(scene)} --deep")
    return fix(
        "Read the ranks' flight recorders: they tell the group and the number of every call",
        look,
        _WHAT_IT_DOES,
    )
