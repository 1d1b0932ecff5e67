"""Faults planted in the nodes and links of a real cluster, and healthy runs beside them: what
`trainprobe ready` says of each is scored.

`python -m tests.gallery.nodes.score` runs them; needs root and what tests/cluster needs.
"""
