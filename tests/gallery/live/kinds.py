"""The table of live kinds: program, launch, and the truth about each. It never reaches the tool.

Causes are those of the catalogue; `also` stands only where the catalogue itself makes a second id
legitimate. Ranks follow the report's contract: the missing, stopped, minority or slow rank; a
lock's holder if it is a rank, else the end of the chain; for uneven inputs the rank that ran out;
two equal camps both; none where the fault is the code's, the host's or the launch's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

RankSets = tuple[tuple[int, ...], ...]
Ranks = Callable[[int, int], RankSets]
Tier = Literal["broken", "withheld", "healthy"]


def culprit(pick: int, world: int) -> RankSets:
    del world
    return ((pick,),)


def camps(pick: int, world: int) -> RankSets:
    """The odd rank; of two ranks no vote can tell which one that is, so both are right as well."""
    return ((pick,), (0, 1)) if world == 2 else ((pick,),)


def neighbours(pick: int, world: int) -> RankSets:
    """From outside nobody can tell a send that was left out from a receive too many."""
    del world
    return ((pick,), (pick + 1,), (pick, pick + 1))


def others(pick: int, world: int) -> RankSets:
    return (tuple(rank for rank in range(world) if rank != pick),)


def nobody(pick: int, world: int) -> RankSets:
    """The fault is the code's or the host's own; naming all ranks says the same."""
    del pick
    return ((), tuple(range(world)))


def no_rank(pick: int, world: int) -> RankSets:
    del pick, world
    return ((),)


def pair(pick: int, world: int) -> RankSets:
    return (tuple(sorted({pick, (pick + 1) % world})),)


def absent(pick: int, world: int) -> RankSets:
    """The launch's own; naming the rank that never came says more."""
    del pick
    return ((world - 1,), ())


def diagonal(pick: int, world: int) -> RankSets:
    """Half of the ranks of a mesh go one way and half the other: two equal camps, and either is
    as right as both.
    """
    del pick
    odd = tuple(rank for rank in range(world) if rank // 2 == rank % 2)
    rest = tuple(rank for rank in range(world) if rank not in odd)
    return (odd, rest, tuple(range(world)))


def across(pick: int, world: int) -> RankSets:
    """The rank, or with it the one that waits for it in a group of these two; without --deep
    nobody can tell whose group that is, and all are as right.
    """
    return ((pick,), tuple(sorted((pick, (pick + world // 2) % world))), tuple(range(world)))


def beside(pick: int, world: int) -> RankSets:
    """The same in the other dimension of the mesh."""
    del world
    return ((pick,), tuple(sorted((pick, pick ^ 1))))


def stage_pair(pick: int, world: int) -> RankSets:
    """Of two stages that talk only to each other, the sender, the receiver, or both."""
    del world
    first = pick // 2 * 2
    return ((first,), (first + 1,), (first, first + 1))


def own_or_culprit(pick: int, world: int) -> RankSets:
    del world
    return ((pick,), ())


def not_local(pick: int, world: int) -> RankSets:
    """A second host never came: its ranks, or nobody here."""
    del pick
    return ((), tuple(range(world, 2 * world)))


@dataclass(frozen=True)
class Kind:
    """One kind of run. `first` and `last` bound the culprit's rank (-1 is the last rank); `before`
    and `during` name parts of `surroundings`.

    `ready` is what the job has printed when it is about to fall ill ({last} is the step before), or
    `still` for one that prints nothing;
    `settle_s` how long to wait from there on.
    `fix` is the cause and rank set of a second fault where there are two.
    """

    name: str
    cause: str
    program: str = ""
    ranks: Ranks = culprit
    launches: tuple[str, ...] = ("torchrun", "bare", "spawn", "module")
    verdicts: tuple[str, ...] = ("hung",)
    also: tuple[str, ...] = ()
    tier: Tier = "broken"
    decoy: bool = False
    before: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ready: str = r"step {last}\b"
    settle_s: float = 2.5
    sizes: tuple[int, ...] = (2, 3, 4, 8)
    forms: tuple[str, ...] = ("loud", "quiet", "masked")
    first: int = 0
    last: int = -1
    runs: int = 7
    words: tuple[str, ...] = ()
    second: tuple[str, Ranks] | None = None

    @property
    def script(self) -> str:
        return self.program or self.name


PROCESSES = (
    "torchrun",
    "bare",
    "module",
)  # launches whose ranks carry RANK in the environment that they were started with
HOOKED = ("torchrun", "module", "popen")

MESH: dict[str, Any] = {
    "launches": ("torchrun", "module"),
    "sizes": (4,),
    "runs": 3,
    "settle_s": 4.0,
}

BROKEN = (
    # own code
    Kind("shard_poll", "rank-stuck"),
    Kind(
        "shard_poll_most",
        "rank-stuck",
        program="shard_poll",
        ranks=others,
        args=("--most", "1"),
        sizes=(3, 4, 5, 8),
        decoy=True,
    ),
    Kind("rejection", "rank-stuck"),
    Kind("child_command", "rank-stuck"),
    Kind("on_signal", "rank-stuck"),
    Kind("debugger", "rank-stuck", also=("process-stopped",), launches=("torchrun", "popen")),
    Kind("thread_at_exit", "rank-stuck", launches=("torchrun", "bare"), settle_s=7.0, decoy=True),
    # services
    Kind("curriculum_socket", "remote-service-wait", before=("silent_server",)),
    Kind("tracker_http", "remote-service-wait", before=("silent_server",)),
    Kind("tracker_httpx", "remote-service-wait", before=("silent_server",)),
    Kind("hub_download", "hub-unreachable", settle_s=6.0),
    # collectives
    Kind("barrier_in_save", "rank-conditional-collective", ranks=camps),
    Kind("early_return", "rank-conditional-collective", ranks=camps, settle_s=3.5),
    Kind(
        "best_model",
        "rank-conditional-collective",
        ranks=camps,
        also=("collective-order-mismatch",),
    ),
    Kind("extra_validation", "rank-conditional-collective", ranks=camps, first=1),
    Kind("gather_metrics", "rank-conditional-collective", ranks=camps),
    Kind(
        "trainer_callback",
        "rank-conditional-collective",
        ranks=camps,
        launches=("torchrun", "bare"),
        settle_s=4.0,
        sizes=(2, 3, 4),
        runs=6,
    ),
    Kind(
        "accelerate_gather",
        "rank-conditional-collective",
        ranks=camps,
        launches=("torchrun", "accelerate"),
        sizes=(2, 3, 4),
        runs=6,
    ),
    Kind("nan_skip", "rank-conditional-collective", ranks=camps),
    Kind("two_groups", "collective-order-mismatch", ranks=camps),
    Kind(
        "groups_in_dict",
        "collective-order-mismatch",
        ranks=camps,
        words=("--deep",),
        sizes=(2, 3, 4),
        runs=4,
    ),
    Kind(
        "gather_or_reduce",
        "collective-order-mismatch",
        ranks=camps,
        also=("rank-conditional-collective",),
    ),
    Kind("ring_exchange", "collective-order-mismatch", ranks=nobody),
    Kind(
        "pipeline",
        "rank-conditional-collective",
        ranks=neighbours,
        also=("collective-order-mismatch",),
        last=-2,
    ),
    Kind(
        "ddp_branch",
        "ddp-unused-parameters",
        ranks=camps,
        also=("rank-divergent-forward", "rank-conditional-collective"),
    ),
    Kind("fsdp_experts", "rank-divergent-forward", ranks=camps),
    Kind("fsdp_generate", "rank-divergent-forward", ranks=camps),
    Kind("short_epoch", "uneven-inputs", ranks=culprit),
    Kind(
        "short_epoch_most",
        "uneven-inputs",
        program="short_epoch",
        ranks=others,
        args=("--most", "1"),
        sizes=(3, 4, 8),
        decoy=True,
    ),
    Kind("uneven_iterable", "uneven-inputs", ranks=culprit, settle_s=4.0),
    Kind(
        "left_early",
        "rank-exited-early",
        launches=("torchrun", "bare", "popen", "module"),
        first=1,
        settle_s=4.0,
    ),
    Kind(
        "early_stopping",
        "rank-exited-early",
        launches=("torchrun", "bare", "popen", "module"),
        first=1,
        settle_s=4.0,
    ),
    Kind("lost_peer", "rank-killed", launches=("popen",), during=("kill_rank",), first=1),
    Kind("store_wait_lost", "rank-killed", launches=("popen",), during=("kill_rank",), first=1),
    # data loading
    Kind("worker_poll", "data-worker-stuck"),
    Kind("worker_fifo", "data-worker-stuck"),
    Kind(
        "worker_cache_server",
        "remote-service-wait",
        also=("data-worker-stuck",),
        before=("silent_server",),
    ),
    Kind(
        "worker_stopped",
        "process-stopped",
        program="workers",
        launches=PROCESSES,
        during=("stop_worker",),
        settle_s=3.5,
    ),
    # processes
    Kind(
        "rank_stopped", "process-stopped", program="plain", launches=HOOKED, during=("stop_rank",)
    ),
    Kind(
        "rank_frozen",
        "process-stopped",
        program="plain",
        launches=HOOKED,
        during=("freeze_rank",),
        runs=4,
    ),
    Kind("native_sleep", "gil-held"),
    Kind("regex_filter", "gil-held"),
    Kind("lazy_plugin", "import-hang"),
    Kind("import_race", "import-hang"),
    Kind("fork_cache_lock", "fork-inherited-lock", settle_s=4.0),
    Kind("fork_audit_log", "fork-inherited-lock"),
    Kind("fork_openmp", "fork-thread-pool", settle_s=4.0),
    Kind("full_queue", "queue-deadlock", settle_s=3.5),
    Kind("join_before_get", "queue-deadlock"),
    Kind("dead_consumer", "queue-deadlock", decoy=True),
    Kind("upload_pipe", "queue-deadlock"),
    Kind("two_locks", "thread-deadlock", settle_s=3.0),
    # locks, builds
    Kind("flock_cache", "file-lock-held", before=("hold_flock",)),
    Kind("flock_in_collective", "file-lock-held", settle_s=4.0),
    Kind("filelock_cache", "file-lock-held", before=("hold_flock",)),
    Kind("filelock_stale", "file-lock-held", before=("leave_soft_lock",)),
    Kind(
        "datasets_cache",
        "file-lock-held",
        before=("hold_datasets_lock",),
        settle_s=6.0,
        sizes=(2, 3, 4),
        runs=6,
    ),
    Kind("extension_baton", "extension-build-lock", before=("leave_baton",), settle_s=5.0),
    Kind(
        "heavy_templates",
        "rank-compiling",
        verdicts=("hung", "slow"),
        settle_s=8.0,
        sizes=(2, 3, 4),
        runs=5,
    ),
    Kind(
        "compile_lengths",
        "rank-compiling",
        verdicts=("hung", "slow"),
        settle_s=8.0,
        sizes=(2, 3, 4),
        runs=5,
    ),
    # storage, host, network
    Kind("mounted_read", "storage-stall", before=("dead_mount",)),
    Kind("mounted_save", "storage-stall", before=("dead_mount",)),
    Kind(
        "blackhole",
        "network-fault",
        program="plain",
        ranks=nobody,
        launches=("netns",),
        before=("two_hosts",),
        during=("cut_cable",),
        settle_s=4.0,
    ),
    Kind(
        "rank_missing",
        "rendezvous-incomplete",
        program="plain",
        also=("world-size-mismatch",),
        ranks=absent,
        launches=("one-short",),
        ready="still",
        settle_s=6.5,
        forms=("quiet",),
    ),
    Kind(
        "odd_world",
        "world-size-mismatch",
        program="plain",
        ranks=own_or_culprit,
        launches=("odd-world",),
        ready="still",
        settle_s=6.5,
        forms=("quiet",),
        first=1,
    ),
    Kind(
        "second_host",
        "rendezvous-incomplete",
        program="plain",
        ranks=not_local,
        launches=("two-nodes",),
        ready="still",
        settle_s=6.5,
        forms=("quiet",),
        runs=4,
    ),
    # slow
    Kind(
        "slow_rank",
        "straggler-rank",
        verdicts=("slow",),
        settle_s=4.0,
        words=("--watch", "4", "--times", "2"),
    ),
    Kind(
        "slow_samples",
        "data-starvation",
        ranks=nobody,
        verdicts=("slow",),
        settle_s=4.0,
        words=("--watch", "4", "--times", "2"),
    ),
    Kind(
        "many_threads",
        "cpu-oversubscribed",
        ranks=nobody,
        verdicts=("slow",),
        settle_s=4.0,
        words=("--watch", "4", "--times", "2"),
        sizes=(2, 3, 4),
    ),
    Kind(
        "cpu_quota",
        "cpu-oversubscribed",
        program="plain",
        ranks=nobody,
        verdicts=("slow",),
        launches=PROCESSES,
        during=("cpu_quota",),
        settle_s=4.0,
        words=("--watch", "4", "--times", "2"),
        sizes=(2, 3, 4),
    ),
    # meshes of two dimensions
    Kind("mesh_shard_poll", "rank-stuck", **MESH),
    Kind("mesh_order", "collective-order-mismatch", ranks=diagonal, words=("--deep",), **MESH),
    Kind(
        "mesh_skip",
        "rank-conditional-collective",
        ranks=across,
        also=("collective-order-mismatch",),
        **MESH,
    ),
    Kind("mesh_stopped", "process-stopped", program="mesh_plain", during=("stop_rank",), **MESH),
    Kind(
        "stages_no_send",
        "rank-conditional-collective",
        ranks=stage_pair,
        also=("collective-order-mismatch",),
        **MESH,
    ),
    Kind(
        "stages_uneven",
        "rank-conditional-collective",
        ranks=stage_pair,
        also=("collective-order-mismatch", "uneven-inputs"),
        **MESH,
    ),
    Kind("stages_stuck", "rank-stuck", **MESH),
    Kind("schedule_stuck", "rank-stuck", **MESH),
    Kind(
        "hsdp_branch",
        "rank-divergent-forward",
        ranks=beside,
        also=("rank-conditional-collective", "collective-order-mismatch"),
        **MESH,
    ),
    Kind("hsdp_stuck", "rank-stuck", **MESH),
    # two faults
    Kind(
        "two_troubles",
        "file-lock-held",
        launches=HOOKED,
        before=("hold_flock",),
        during=("stop_next_rank",),
        sizes=(3, 4, 8),
        decoy=True,
        second=("process-stopped", lambda pick, world: (((pick + 1) % world,),)),
    ),
)
WITHHELD = (
    Kind("store_claims", "unknown", tier="withheld", ranks=pair),
    Kind("shared_semaphore", "unknown", tier="withheld", settle_s=3.0),
    Kind(
        "memory_pause",
        "unknown",
        tier="withheld",
        launches=HOOKED,
        during=("memory_limit",),
        settle_s=8.0,
    ),
)
HEALTHY = tuple(
    Kind(
        name,
        "none",
        program=program,
        ranks=no_rank,
        tier="healthy",
        **{"verdicts": ("healthy",), "runs": 6, **more},  # type: ignore[arg-type, dict-item]
    )
    for name, program, more in (
        ("plain", "plain", {}),
        ("workers", "workers", {}),
        ("long_checkpoint", "long_checkpoint", {}),
        ("evaluation_first", "evaluation_first", {}),
        ("validation_loader", "validation_loader", {"settle_s": 4.0}),
        (
            "compile_first",
            "compile_first",
            {"ready": "compiling", "settle_s": 4.0, "sizes": (2, 3, 4)},
        ),
        ("jittery", "jittery", {}),
        ("slow_balanced", "slow_balanced", {}),
        ("big_gather", "big_gather", {}),
        ("preprocessing", "preprocessing", {"ready": "tokenised"}),
        ("accumulation", "accumulation", {}),
        ("warm_loader", "warm_loader", {"ready": "reading the index", "settle_s": 5.0}),
        ("epoch_statistics", "epoch_statistics", {}),
        ("trainer_alone", "trainer_alone", {"launches": ("single",), "sizes": (1,)}),
        (
            "accelerate_plain",
            "accelerate_plain",
            {"launches": ("torchrun", "accelerate"), "sizes": (2, 3, 4)},
        ),
        ("fsdp_plain", "fsdp_plain", {}),
        ("steady_download", "steady_download", {"before": ("trickle_server",)}),
        ("shared_lock", "shared_lock", {}),
        *(
            (name, name, {"launches": ("torchrun", "module"), "sizes": (4,), "runs": 2})
            for name in ("mesh_plain", "stages_plain", "schedule_plain", "hsdp_plain")
        ),
        (
            "kernel_idle",
            "kernel_idle",
            {
                "launches": ("single",),
                "sizes": (1,),
                "ready": "kernel ready",
                "verdicts": ("healthy", "undetermined"),
            },
        ),
        (
            "just_started",
            "plain",
            {
                "launches": ("torchrun", "bare", "spawn"),
                "ready": "",
                "settle_s": 1.0,
                "forms": ("quiet",),
                "verdicts": ("healthy", "undetermined"),
            },
        ),
    )
)
KINDS = {kind.name: kind for kind in (*BROKEN, *WITHHELD, *HEALTHY)}


@dataclass(frozen=True)
class Planned:
    """One run of the plan."""

    kind: str
    number: int
    world: int
    form: str
    launch: str
    pick: int
    seed: int
    when: int

    @property
    def key(self) -> str:
        return f"{self.kind}.{self.number}"

    @property
    def decoy(self) -> bool:
        """The loudest sign points elsewhere: an old error in the log of a victim, or a kind made
        so.
        """
        return self.form == "masked" or KINDS[self.kind].decoy


def plan(seed: int = 1) -> list[Planned]:
    """All runs, the same for the same seed; the first of every kind, then the second of every
    kind, and so on.
    """
    made = []
    for kind in KINDS.values():
        chance = random.Random(f"{seed}/{kind.name}")
        turn = chance.randrange(12)
        for number in range(kind.runs):
            world = kind.sizes[(turn + number) % len(kind.sizes)]
            form = kind.forms[(turn // 2 + number) % len(kind.forms)]
            launch = kind.launches[
                (turn // 3 + number + number // len(kind.sizes)) % len(kind.launches)
            ]
            highest = world + kind.last if kind.last < 0 else min(kind.last, world - 1)
            pick = chance.randint(kind.first, max(kind.first, highest))
            made.append(
                Planned(
                    kind.name,
                    number,
                    world,
                    form,
                    launch,
                    pick,
                    chance.randrange(1000),
                    chance.randint(4, 7),
                )
            )
    return sorted(made, key=lambda run: run.number)


def truths(run: Planned) -> list[tuple[tuple[str, ...], RankSets]]:
    """What may stand in first place: accepted ids with the rank sets that go with them. Empty
    for a healthy run.
    """
    kind = KINDS[run.kind]
    if kind.tier == "healthy":
        return []
    found = [((kind.cause, *kind.also), kind.ranks(run.pick, run.world))]
    if kind.second is not None:
        found.append(((kind.second[0],), kind.second[1](run.pick, run.world)))
    return found
