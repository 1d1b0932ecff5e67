"""On how many ranks a rung is tried: small sizes first, since a fault on one rank is easier to read than the same on sixty-four."""

from __future__ import annotations

from trainprobe.model.probes import ProbeSpec


def of(spec: ProbeSpec, nproc: int, *, every_size: bool) -> tuple[int, ...]:
    """Return the sizes for a world of `nproc` ranks, the full one last.

    `every_size` gives 1, 2, 4 … and N (the user's script); otherwise a rung that climbs runs on 1 and on N ranks.
    """
    if spec.scope == "host":
        return (1,)
    least = 2 if "ranks>=2" in spec.needs else 1
    if "ranks" not in spec.climbs:
        return (nproc,) if nproc >= least else ()
    sizes = {nproc}
    if every_size:
        power = 1
        while power < nproc:
            sizes.add(power)
            power *= 2
    else:
        sizes.add(1)
    return tuple(sorted(size for size in sizes if least <= size <= nproc))
