"""The times by which a cell is judged. Each can be set in trainprobe.yaml; the defaults are
here, with where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """All in seconds.

    `first_output_s`, `stall_s`, `run_s`: how long the user's command may say nothing at first, may
    stand still, and is watched at most.
    `echo_s`: how long the other ranks get to break by themselves after one died; gloo's peers
    notice a closed connection at once and need about a second to leave. `leave_s`: how long one
    that has raised may take to go: it joins its loader workers first, 5 s each.
    `left_s`: a rank has left, and the others may still be writing their last checkpoint.
    `stopped_s`: a stop shorter than this may be a debugger or a scheduler that comes back.
    `to_its_end`: the command runs until it ends, and not only until it has shown steps; then
    `silent_s` is how long it may be silent though it computes.
    `between_looks_s`: long enough for a line to change, short enough for a reader who waits.
    `third_look_s`: docs/design.md.
    """

    first_output_s: float = 60.0
    stall_s: float = 20.0
    run_s: float = 60.0
    echo_s: float = 1.5
    leave_s: float = 15.0
    left_s: float = 5.0
    stopped_s: float = 3.0
    between_looks_s: float = 0.5
    third_look_s: float = 2.0
    stop_grace_s: float = 2.0
    kill_s: float = 3.0
    silent_s: float = float("inf")
    to_its_end: bool = False
