"""How many workers this node bears, for all ranks and all loaders that are open at one time."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import _emit

HEADROOM = 0.8  # of each limit: the training loop itself needs the rest
Costs = Dict[Tuple[int, str, int], Dict[str, float]]


def tell(costs: Costs, limits: Dict[str, Tuple[int, str]], ranks: int, loaders: int, failed: List[Dict[str, Any]]) -> Optional[int]:
    """Tell `workers.safe`, per rank and loader, from what one worker was measured to take; None where no cell with workers was measured."""
    with_workers = [key for key in costs if key[0]]
    broken = sorted({(one["workers"], one["method"]) for one in failed if one.get("workers")})
    if not with_workers:
        if broken:
            _say(0, "No number of workers loads right here; 0 does.", {})
            return 0
        return None
    key = max((one for one in with_workers if one[2] == 1), key=lambda one: one[0], default=with_workers[0])
    bounds = _bounds(costs, key, {name: value for name, (value, _) in limits.items()}, ranks, loaders)
    useful = max(1, limits.get("cpus", (1, ""))[0] // max(1, ranks))
    bounds["the number of processors" if useful >= key[0] else "what was tried"] = max(useful, key[0])
    name, most = min(bounds.items(), key=lambda one: one[1])
    says = f"{_count(most, 'worker')} {'is' if most == 1 else 'are'} safe for each of {_count(ranks, 'rank')} and {_count(loaders, 'loader')}: bound by {name}"
    others = [f"{other} would bear {number}" for other, number in sorted(bounds.items(), key=lambda one: one[1]) if other != name]
    says += f" ({', '.join(others[:3])})." if others else "."
    ways = sorted({method for _, method in broken} - {one[1] for one in with_workers})
    if ways:
        says += f" Workers started by {' and '.join(ways)} fail; those by {', '.join(sorted({one[1] for one in with_workers}))} do not."
    _say(most, says, bounds)
    return most


def _bounds(costs: Costs, key: Tuple[int, str, int], limits: Dict[str, int], ranks: int, loaders: int) -> Dict[str, int]:
    """How many workers per rank and loader each limit bears, with HEADROOM; a worker's cost is the difference to no workers, or to its largest."""
    workers = key[0]
    cost, none = costs[key], costs.get((0, "none", 1))
    base = none or cost
    found: Dict[str, int] = {}

    def bound(name: str, limit: float, used: float, each: float) -> None:
        if limit > 0 and each > 0:
            found[name] = max(0, int((HEADROOM * limit - used) // each))

    # Forked workers share pages until they write to them: their own part is what each adds.
    per_memory = max(cost["worker_private"], (cost["pss"] - base["pss"]) / workers) if none else cost["worker_pss"]
    bound("memory", limits.get("memory_free_bytes", 0), ranks * base["pss"], ranks * loaders * per_memory)
    if none:
        bound("the limit of open files", limits.get("nofile", 0), base["parent_fds"], loaders * max(1.0, (cost["parent_fds"] - base["parent_fds"]) / workers))
        bound("the limit of processes", limits.get("pids", 0), ranks * base["pids"], ranks * loaders * max(1.0, (cost["pids"] - base["pids"]) / workers))
    bound("shared memory", limits.get("shm_bytes", 0), 0.0, ranks * loaders * cost["shm"] / workers)
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _say(most: int, says: str, bounds: Dict[str, int]) -> None:
    _emit.measure("workers.safe", most, "")
    _emit.note(says, check="data.safe_workers", status="ok" if most else "warn", value=most, bounds=bounds)
