"""The wait-for graph: who waits for whom, and who is at the end of it."""

from trainprobe.waits.suspects import Divergence, SuspectGroup

__all__ = ["Divergence", "SuspectGroup"]
