"""`trainprobe checks-here`: what other nodes are asked to do by `ready`. Not for people."""

from __future__ import annotations


def checks_here() -> int:
    """Check this host as stdin says, and print what was found as lines of JSON."""
    from trainprobe.ready.far import checks_here as check

    return check()
