"""`trainprobe climb-here`: what each node is asked to do by `diagnose --nodes`. Not for people."""

from __future__ import annotations


def climb_here() -> int:
    """Run this node's part of a climb, as stdin says, and print what is seen as lines of JSON."""
    from trainprobe.ladder.node_here import climb_here as climb

    return climb()
