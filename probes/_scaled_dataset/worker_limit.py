"""How many workers this host can take, for all ranks and loaders open at the same time."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import _emit

HEADROOM = 0.8  # of each limit: the training loop itself needs the rest
Costs = Dict[Tuple[int, str, int], Dict[str, float]]


def tell(
    costs: Costs,
    limits: Dict[str, Tuple[int, str]],
    ranks: int,
    loaders: int,
    failed: List[Dict[str, Any]],
) -> Optional[int]:
    """Report `workers.safe` per rank and loader; None without a measured cell with workers."""
    with_workers = [key for key in costs if key[0]]
    broken = sorted({(item["workers"], item["method"]) for item in failed if item.get("workers")})
    if not with_workers:
        if broken:
            _say(0, "No number of workers loads right here; 0 does.", {})
            return 0
        return None
    key = max(
        (item for item in with_workers if item[2] == 1),
        key=lambda item: item[0],
        default=with_workers[0],
    )
    bounds = _bounds(
        costs, key, {name: value for name, (value, _) in limits.items()}, ranks, loaders
    )
    useful = max(1, limits.get("cpus", (1, ""))[0] // max(1, ranks))
    bounds["the number of processors" if useful >= key[0] else "what was tried"] = max(
        useful, key[0]
    )
    name, most = min(bounds.items(), key=lambda item: item[1])
    sentence = (
        f"{_count(most, 'worker')} {'is' if most == 1 else 'are'} safe for each of"
        f" {_count(ranks, 'rank')} and {_count(loaders, 'loader')}: bound by {name}"
    )
    others = [
        f"{other} would bear {number}"
        for other, number in sorted(bounds.items(), key=lambda item: item[1])
        if other != name
    ]
    sentence += f" ({', '.join(others[:3])})." if others else "."
    ways = sorted({method for _, method in broken} - {item[1] for item in with_workers})
    if ways:
        sentence += (
            f" Workers started by {' and '.join(ways)} fail; those by"
            f" {', '.join(sorted({item[1] for item in with_workers}))} do not."
        )
    _say(most, sentence, bounds)
    return most


def _bounds(
    costs: Costs, key: Tuple[int, str, int], limits: Dict[str, int], ranks: int, loaders: int
) -> Dict[str, int]:
    """The workers per rank and loader that each limit bears, with HEADROOM."""
    workers = key[0]
    cost, none = costs[key], costs.get((0, "none", 1))
    base = none or cost
    found: Dict[str, int] = {}

    def bound(name: str, limit: float, used: float, each: float) -> None:
        if limit > 0 and each > 0:
            found[name] = max(0, int((HEADROOM * limit - used) // each))

    # Forked workers share pages until they write to them: their own part is what each adds.
    per_memory = (
        max(cost["worker_private"], (cost["pss"] - base["pss"]) / workers)
        if none
        else cost["worker_pss"]
    )
    bound(
        "memory",
        limits.get("memory_free_bytes", 0),
        ranks * base["pss"],
        ranks * loaders * per_memory,
    )
    if none:
        bound(
            "the limit of open files",
            limits.get("nofile", 0),
            base["parent_fds"],
            loaders * max(1.0, (cost["parent_fds"] - base["parent_fds"]) / workers),
        )
        bound(
            "the limit of processes",
            limits.get("pids", 0),
            ranks * base["pids"],
            ranks * loaders * max(1.0, (cost["pids"] - base["pids"]) / workers),
        )
    bound("shared memory", limits.get("shm_bytes", 0), 0.0, ranks * loaders * cost["shm"] / workers)
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _say(most: int, sentence: str, bounds: Dict[str, int]) -> None:
    _emit.measure("workers.safe", most, "")
    _emit.check("data.safe_workers", "ok" if most else "warn", sentence, most, bounds=bounds)
