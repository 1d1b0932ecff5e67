"""`trainprobe probe-here`: what other nodes are asked to do where groups of nodes are tried. Not for people."""

from __future__ import annotations


def probe_here() -> int:
    """Run one of our probe programs, as stdin says, and print its events as lines of JSON."""
    from trainprobe.nodes.probe_here import probe_here as probe

    return probe()
