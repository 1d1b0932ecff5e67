"""On how many ranks a rung is tried: small sizes first, since a fault on one rank is easier to read than the same on sixty-four."""

from __future__ import annotations

from trainprobe.model.probes import ProbeSpec


def of(spec: ProbeSpec, nproc: int, *, every_size: bool, nodes: int = 0) -> tuple[int, ...]:
    """Return the sizes for a world of `nproc` ranks, the full one last; over `nodes` hosts with `nproc` ranks on each, the sizes are those of whole hosts.

    `every_size` gives 1, 2, 4 … and N (the user's script); otherwise a rung that climbs runs on 1 and on N ranks.
    """
    if spec.scope == "host":
        return (1,)
    least = 2 if "ranks>=2" in spec.needs else 1
    if nodes:
        counts = _up_to(nodes, every_size=True) if "ranks" in spec.climbs else (nodes,)
        return tuple(count * nproc for count in counts if count * nproc >= least)
    if "ranks" not in spec.climbs:
        return (nproc,) if nproc >= least else ()
    sizes = _up_to(nproc, every_size=every_size)
    return tuple(size for size in sizes if least <= size <= nproc)


def _up_to(most: int, *, every_size: bool) -> tuple[int, ...]:
    """1, 2, 4 … and `most`, or 1 and `most` alone."""
    sizes = {1, most}
    power = 2
    while every_size and power < most:
        sizes.add(power)
        power *= 2
    return tuple(sorted(sizes))
