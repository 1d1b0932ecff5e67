"""The table of recorded logs: which program is started how, with which words set, and the truth
about it. It never reaches the tool.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

HOOKS = {
    "dump": "import faulthandler; faulthandler.dump_traceback_later(9)\n",
    "fault": "import faulthandler; faulthandler.enable()\n",
}


@dataclass(frozen=True)
class Recording:
    """One job.

    `program` is a path below tests/gallery without `.py`; `script` the name it runs under.
    `defaults` replaces the defaults of its options, so that nothing of the truth stands in a
    command. `launch` is torchrun, tee, tree, tree-tee, restarts, accelerate, spawn, plain,
    plain-files, single, late (one rank of two nodes never comes), short (a rank is missing), odd (a
    rank expects another world), or a word list of its own.
    `hooks` are put at the top of the program, `stop` is the signal that ends the job from outside
    after `limit_s`.
    """

    key: str
    program: str
    launch: str
    cause: str
    ranks: tuple[int, ...] | None
    verdict: tuple[str, ...] = ("crashed",)
    also: tuple[str, ...] = ()
    world: int = 2
    script: str = "train.py"
    defaults: tuple[tuple[str, object], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    hooks: tuple[str, ...] = ()
    timeout_s: int = 8
    limit_s: int = 60
    stop: int = 15
    before: str = ""
    files: tuple[tuple[str, str], ...] = ()
    decoy: bool = False
    notes: str = ""

    @property
    def case(self) -> str:
        return hashlib.sha256(f"recorded/{self.key}".encode()).hexdigest()[:8]


DETAIL, INFO = (
    (("TORCH_DISTRIBUTED_DEBUG", "DETAIL"),),
    (
        ("TORCH_DISTRIBUTED_DEBUG", "INFO"),
        ("TORCH_CPP_LOG_LEVEL", "INFO"),
    ),
)
UNSEEN = ("hung", "crashed", "undetermined")


def _raising() -> list[Recording]:
    """Plain exceptions of the user's code, each kind under another launch and at another
    verbosity.
    """
    rows = [
        ("key", "torchrun", 1, 2, (), "pretrain.py"),
        ("key", "tree", 2, 4, (), "pretrain.py"),
        ("file", "torchrun", 0, 2, INFO, "train.py"),
        ("zero", "spawn", 1, 3, (), "main.py"),
        ("assert", "plain", 1, 2, (), "run.py"),
        ("index", "torchrun", 1, 2, (), "finetune.py"),
        ("shape", "torchrun", 3, 4, INFO, "train_lm.py"),
        ("own", "tee", 0, 4, (), "main.py"),
        ("chained", "torchrun", 1, 2, (), "main.py"),
        ("attribute", "plain-files", 2, 3, (), "train.py"),
        ("type", "tree-tee", 1, 2, (), "train.py"),
        ("exit", "torchrun", 1, 2, (), "train.py"),
        ("exit", "plain", 0, 2, (), "train.py"),
    ]
    found = []
    for number, (kind, launch, pick, world, env, script) in enumerate(rows):
        form = ("loud", "masked", "quiet")[number % 3]
        defaults = (
            ("pick", pick),
            ("seed", number),
            ("form", form),
            ("when", 4 + number % 5),
            ("steps", 400),
            ("kind", kind),
        )
        also = (
            ("model-shape-fault",)
            if kind == "shape"
            else (
                ("bad-sample",)
                if kind == "assert"
                else ("rank-exited-early",)
                if kind == "exit"
                else ()
            )
        )
        ranks = None if kind == "shape" else (pick,)  # of the code's own shapes no rank is to blame
        key = f"raising-{kind}-{launch}-{number}"
        found.append(
            Recording(
                key,
                "logs/programs/raising",
                launch,
                "user-exception",
                ranks,
                world=world,
                script=script,
                defaults=defaults,
                env=env,
                also=also,
            )
        )
    return found


def _restarted() -> list[Recording]:
    base = (("pick", 1), ("seed", 2), ("form", "loud"), ("when", 4), ("kind", "key"))
    return [
        Recording(
            "restart-then-well",
            "logs/programs/raising",
            "restarts",
            "none",
            None,
            ("healthy",),
            defaults=(*base, ("steps", 14), ("until", 1)),
            decoy=True,
        ),
        Recording(
            "restart-twice",
            "logs/programs/raising",
            "restarts",
            "user-exception",
            (1,),
            defaults=(*base, ("steps", 14)),
        ),
        # the second attempt cannot connect: the store still names the ports of the first
        Recording(
            "restart-again",
            "logs/programs/raising",
            "restarts-tree",
            "unknown",
            None,
            also=("user-exception", "firewall-or-route"),
            defaults=(*base, ("steps", 12), ("until", 1)),
        ),
    ]


def _loading() -> list[Recording]:
    rows: list[tuple[str, str, str, int, int, tuple[str, ...], str]] = [
        ("ragged", "torchrun", "bad-sample", 1, 2, (), "loud"),
        ("ragged", "plain", "bad-sample", 0, 0, (), "masked"),
        ("segfault", "torchrun", "data-worker-crash", 1, 2, (), "quiet"),
        ("segfault", "spawn", "data-worker-crash", 0, 1, (), "loud"),
        (
            "killed",
            "torchrun",
            "host-oom-killed",
            1,
            2,
            ("data-worker-crash", "rank-killed"),
            "loud",
        ),
        ("none", "torchrun", "bad-sample", 0, 2, ("user-exception",), "loud"),
        ("keys", "tee", "user-exception", 1, 2, ("bad-sample",), "loud"),
        ("corrupt", "torchrun", "bad-sample", 1, 2, ("user-exception",), "loud"),
        ("lambda", "torchrun", "unpicklable-dataset", 0, 2, (), "loud"),
        ("lambda", "single-rank", "unpicklable-dataset", 0, 1, (), "loud"),
        ("ragged", "single", "launcher-args", 0, 1, (), "loud"),
        ("keys", "accelerate", "launcher-args", 0, 1, (), "loud"),
    ]
    found = []
    for number, (kind, launch, cause, pick, workers, also, form) in enumerate(rows):
        defaults = (
            ("pick", pick),
            ("seed", 2),
            ("form", form),
            ("when", 6),
            ("steps", 400),
            ("kind", kind),
            ("workers", workers or 0),
        )
        ranks = None if kind == "lambda" or launch in ("single", "accelerate") else (pick,)
        key, world = f"loading-{kind}-{launch}-{number}", 1 if launch == "single-rank" else 2
        found.append(
            Recording(
                key,
                "logs/programs/loading",
                launch,
                cause,
                ranks,
                also=also,
                world=world,
                defaults=defaults,
                script="train_seq.py",
            )
        )
    return found


def _software() -> list[Recording]:
    def one(
        key: str,
        program: str,
        launch: str,
        cause: str,
        pick: int,
        ranks: tuple[int, ...] | None,
        kind: str,
        **more: object,
    ) -> Recording:
        defaults = (
            ("pick", pick),
            ("seed", 2),
            ("form", more.pop("form", "loud")),
            ("when", 4),
            ("steps", 400),
            ("kind", kind),
        )
        return Recording(
            key,
            f"logs/programs/{program}",
            launch,
            cause,
            ranks,
            defaults=defaults,
            **more,  # type: ignore[arg-type]
        )

    offline = (
        ("HTTPS_PROXY", ""),
        ("HTTP_PROXY", ""),
        ("https_proxy", ""),
        ("http_proxy", ""),
        ("HF_ENDPOINT", ""),
    )
    return [
        one("save-full", "saving", "torchrun", "disk-full", 1, None, "full", before="small-disk"),
        one(
            "save-full-0",
            "saving",
            "spawn",
            "disk-full",
            0,
            None,
            "full",
            before="small-disk",
            form="quiet",
        ),
        one("read-cut", "saving", "torchrun", "checkpoint-corrupt", 1, None, "cut"),
        one("read-cut-0", "saving", "plain", "checkpoint-corrupt", 0, None, "cut", form="masked"),
        one(
            "read-other",
            "saving",
            "tee",
            "state-dict-mismatch",
            0,
            None,
            "other",
            also=("user-exception",),
        ),
        one(
            "unused",
            "wrapping",
            "torchrun",
            "ddp-unused-parameters",
            0,
            None,
            "unused",
            script="train_ddp.py",
        ),
        one(
            "wrapped-detail",
            "wrapping",
            "torchrun",
            "native-crash",
            0,
            None,
            "unused",
            env=DETAIL,
            script="train_ddp.py",
        ),
        one(
            "unused-spawn",
            "wrapping",
            "spawn",
            "ddp-unused-parameters",
            0,
            None,
            "unused",
            world=3,
            env=INFO,
        ),
        one("nan", "wrapping", "torchrun", "nan-loss", 0, None, "nan"),
        one("nan-plain", "wrapping", "single-rank", "nan-loss", 0, None, "nan", world=1),
        one(
            "shape-detail",
            "wrapping",
            "torchrun",
            "collective-shape-mismatch",
            1,
            None,
            "shape",
            world=3,
            env=DETAIL,
        ),
        one(
            "shape-off",
            "wrapping",
            "torchrun",
            "collective-shape-mismatch",
            1,
            None,
            "shape",
            world=2,
        ),
        one(
            "shape-detail-2",
            "wrapping",
            "plain",
            "collective-shape-mismatch",
            0,
            None,
            "shape",
            world=2,
            env=DETAIL,
        ),
        one(
            "gather-off",
            "wrapping",
            "torchrun",
            "collective-shape-mismatch",
            1,
            None,
            "gather",
            world=2,
        ),
        one(
            "gather-detail",
            "wrapping",
            "torchrun",
            "collective-shape-mismatch",
            1,
            None,
            "gather",
            world=4,
            env=DETAIL,
        ),
        one(
            "order-detail",
            "wrapping",
            "torchrun",
            "collective-order-mismatch",
            2,
            None,
            "order",
            world=3,
            env=DETAIL,
            also=("rank-conditional-collective",),
        ),
        one(
            "order-detail-2",
            "wrapping",
            "spawn",
            "collective-order-mismatch",
            1,
            None,
            "order",
            world=2,
            env=DETAIL,
            also=("rank-conditional-collective",),
        ),
        one(
            "order-off",
            "wrapping",
            "torchrun",
            "collective-order-mismatch",
            1,
            None,
            "order",
            world=2,
            also=("rank-conditional-collective",),
            verdict=UNSEEN,
        ),
        one(
            "monitored",
            "wrapping",
            "torchrun",
            "rank-conditional-collective",
            1,
            (1,),
            "monitored",
            world=3,
            verdict=UNSEEN,
            also=("rank-stuck",),
        ),
        one("no-cuda", "surroundings", "torchrun", "cpu-only-torch", -1, None, "cuda"),
        one("no-cuda-4", "surroundings", "tee", "cpu-only-torch", -1, None, "cuda", world=4),
        one(
            "no-hub",
            "surroundings",
            "torchrun",
            "hub-unreachable",
            0,
            None,
            "hub",
            env=offline,
            limit_s=120,
        ),
        one(
            "no-threads",
            "surroundings",
            "torchrun",
            "address-space-limit",
            1,
            None,
            "threads",
            also=("process-limit",),
        ),
        one(
            "no-memory",
            "surroundings",
            "torchrun",
            "address-space-limit",
            1,
            None,
            "memory",
            also=("host-oom-killed",),
        ),
        one(
            "no-module",
            "surroundings",
            "torchrun",
            "import-path",
            -1,
            None,
            "flash",
            also=("import-failure",),
        ),
        one(
            "vocabulary",
            "surroundings",
            "torchrun",
            "device-assert-index-range",
            1,
            (1,),
            "vocabulary",
            also=("user-exception",),
        ),
        one(
            "label",
            "surroundings",
            "tee",
            "device-assert-index-range",
            0,
            (0,),
            "label",
            also=("user-exception",),
        ),
        one(
            "abort", "surroundings", "torchrun", "native-crash", 1, (1,), "abort", hooks=("fault",)
        ),
        one(
            "abort-bare",
            "surroundings",
            "torchrun",
            "native-crash",
            0,
            (0,),
            "abort",
            form="masked",
        ),
        one("segv", "surroundings", "plain", "native-crash", 1, None, "gather", hooks=("fault",)),
        one("segv-spawn", "surroundings", "spawn", "native-crash", 1, (1,), "gather", world=3),
        one(
            "segv-tree",
            "surroundings",
            "tree",
            "native-crash",
            2,
            (2,),
            "gather",
            world=4,
            hooks=("fault",),
        ),
        one("no-local-rank", "surroundings", "plain-bare", "launcher-args", -1, None, "cuda"),
        Recording(
            "unguarded",
            "logs/programs/unguarded",
            "single",
            "missing-main-guard",
            None,
            script="prep.py",
        ),
    ]


def _trainer() -> list[Recording]:
    def one(
        key: str,
        launch: str,
        cause: str,
        verdict: str,
        world: int = 1,
        also: tuple[str, ...] = (),
        **more: object,
    ) -> Recording:
        words = tuple((name.replace("_", "-"), value) for name, value in more.items())
        return Recording(
            key,
            "logs/programs/hf_trainer",
            launch,
            cause,
            None,
            (verdict,),
            also,
            defaults=words,
            script="run_clm.py",
            world=world,
            limit_s=120,
        )

    return [
        one("hf-well", "single", "none", "healthy"),
        one("hf-teardown", "torchrun", "none", "healthy", world=2),
        one("hf-saves", "torchrun", "none", "healthy", world=2, kind="saves", bar=0),
        one("hf-text", "single", "trainer-removed-columns", "crashed", kind="text"),
        one("hf-text-2", "torchrun", "trainer-removed-columns", "crashed", kind="text", world=2),
        one("hf-empty", "single", "user-exception", "crashed", also=("no-steps-run",), count=0),
    ]


def _healthy() -> list[Recording]:
    rows = [
        ("bar", "torchrun", 2, ()),
        ("bar", "single-rank", 1, ()),
        ("json", "torchrun", 2, ()),
        ("json", "tree", 4, ()),
        ("logging", "torchrun", 2, ()),
        ("logging", "spawn", 3, INFO),
        ("logging", "tee", 2, INFO),
        ("warnings", "torchrun", 2, ()),
        ("warnings", "plain-files", 2, INFO),
        ("bar", "tree-tee", 2, ()),
    ]
    found = []
    for number, (style, launch, world, env) in enumerate(rows):
        defaults = (("seed", number), ("steps", 40), ("style", style))
        key = f"well-{style}-{launch}-{number}"
        found.append(
            Recording(
                key,
                "logs/programs/healthy_run",
                launch,
                "none",
                None,
                ("healthy",),
                world=world,
                defaults=defaults,
                env=env,
            )
        )
    found.append(
        Recording(
            "well-twenty",
            "healthy/ends_after_twenty_steps",
            "torchrun",
            "none",
            None,
            ("healthy", "undetermined"),
        )
    )
    return found


def _illnesses() -> list[Recording]:
    """The planted illnesses of the gallery, which end by gloo's own timeout, at several
    verbosities.
    """
    rows: list[
        tuple[str, str, str, tuple[str, ...], int, tuple[tuple[str, str], ...], tuple[str, ...]]
    ] = [
        (
            "barrier_for_checkpoint",
            "torchrun",
            "rank-conditional-collective",
            ("collective-order-mismatch",),
            2,
            (),
            (),
        ),
        (
            "barrier_for_checkpoint",
            "torchrun",
            "rank-conditional-collective",
            ("collective-order-mismatch",),
            3,
            DETAIL,
            (),
        ),
        (
            "evaluation_gather",
            "torchrun",
            "rank-conditional-collective",
            ("collective-order-mismatch",),
            2,
            (),
            ("dump",),
        ),
        (
            "evaluation_gather",
            "tee",
            "rank-conditional-collective",
            ("collective-order-mismatch",),
            3,
            INFO,
            (),
        ),
        (
            "metrics_broadcast",
            "torchrun",
            "rank-conditional-collective",
            ("collective-order-mismatch",),
            2,
            INFO,
            ("dump",),
        ),
        (
            "extra_all_reduce",
            "torchrun",
            "rank-conditional-collective",
            ("collective-shape-mismatch", "collective-order-mismatch"),
            3,
            (),
            (),
        ),
        (
            "extra_all_reduce",
            "torchrun",
            "rank-conditional-collective",
            ("collective-shape-mismatch", "collective-order-mismatch"),
            2,
            INFO,
            (),
        ),
        (
            "histogram_on_chief",
            "torchrun",
            "rank-conditional-collective",
            ("collective-shape-mismatch", "collective-order-mismatch"),
            2,
            (),
            (),
        ),
        (
            "histogram_on_chief",
            "tree",
            "rank-conditional-collective",
            ("collective-shape-mismatch", "collective-order-mismatch"),
            3,
            DETAIL,
            (),
        ),
        (
            "skipped_reduction",
            "torchrun",
            "rank-conditional-collective",
            ("collective-shape-mismatch", "collective-order-mismatch"),
            2,
            DETAIL,
            (),
        ),
        ("uneven_loss_vector", "torchrun", "collective-shape-mismatch", (), 2, (), ()),
        ("uneven_loss_vector", "plain-files", "collective-shape-mismatch", (), 3, DETAIL, ()),
        ("unpadded_predictions", "torchrun", "collective-shape-mismatch", (), 2, INFO, ()),
        ("null_record", "torchrun", "native-crash", (), 3, (), ("fault",)),
        ("null_record", "tee", "native-crash", (), 2, INFO, ()),
        ("missing_label", "torchrun", "user-exception", (), 3, (), ()),
        ("missing_label", "tree", "user-exception", (), 4, INFO, ()),
        ("budget_reached", "torchrun", "rank-exited-early", (), 2, (), ()),
        ("budget_reached", "torchrun", "rank-exited-early", (), 3, INFO, ()),
        ("returns_at_end_of_file", "plain", "rank-exited-early", ("uneven-inputs",), 2, (), ()),
        ("everything_filtered_out", "torchrun", "no-steps-run", ("none",), 2, (), ()),
        ("everything_filtered_out", "tree", "no-steps-run", ("none",), 2, INFO, ()),
        ("shard_never_ready", "torchrun", "rank-stuck", ("unknown",), 2, (), ("dump",)),
        ("hoarding_loader", "torchrun", "fd-exhaustion", (), 2, (), ()),
    ]
    found = []
    for number, (name, launch, cause, also, world, env, hooks) in enumerate(rows):
        pick = (1, world - 1, 0)[number % 3] if cause != "native-crash" else 1
        ranks: tuple[int, ...] | None = (
            (pick,)
            if cause in ("user-exception", "native-crash", "rank-exited-early", "rank-stuck")
            else None
        )
        verdict: tuple[str, ...] = (
            ("crashed",)
            if cause in ("user-exception", "native-crash", "fd-exhaustion", "no-steps-run")
            else ("crashed", "hung")
        )
        verdict = (
            ("undetermined", "crashed", "at-risk", "healthy")
            if cause == "no-steps-run"
            else verdict
        )
        defaults: tuple[tuple[str, object], ...] = (("pick", pick), ("when", 6), ("steps", 300))
        defaults = (*defaults, ("nofile", 90)) if name == "hoarding_loader" else defaults
        key = f"{name}-{launch}-{number}"
        found.append(
            Recording(
                key,
                f"illnesses/{name}",
                launch,
                cause,
                ranks,
                verdict,
                also,
                world,
                ("train.py", "main.py", "fit.py")[number % 3],
                defaults,
                env,
                hooks,
            )
        )
    return found


def _live() -> list[Recording]:
    """Programs of the live gallery that stand still: some end by gloo's timeout, with stacks
    where faulthandler was armed.
    """
    camp = ("collective-order-mismatch",)
    rows: list[
        tuple[
            str,
            str,
            str,
            tuple[str, ...],
            int,
            tuple[tuple[str, str], ...],
            tuple[str, ...],
            int | None,
        ]
    ] = [
        ("barrier_in_save", "torchrun", "rank-conditional-collective", camp, 2, (), (), None),
        ("early_return", "torchrun", "rank-conditional-collective", camp, 3, INFO, (), None),
        ("best_model", "spawn", "rank-conditional-collective", camp, 2, INFO, (), None),
        (
            "extra_validation",
            "torchrun",
            "rank-conditional-collective",
            camp,
            2,
            (),
            ("dump",),
            None,
        ),
        ("gather_metrics", "torchrun", "rank-conditional-collective", camp, 2, (), (), None),
        (
            "nan_skip",
            "torchrun",
            "rank-conditional-collective",
            (*camp, "uneven-inputs"),
            2,
            INFO,
            (),
            None,
        ),
        (
            "gather_or_reduce",
            "torchrun",
            "collective-order-mismatch",
            ("rank-conditional-collective",),
            2,
            INFO,
            (),
            None,
        ),
        (
            "gather_or_reduce",
            "tee",
            "collective-order-mismatch",
            ("rank-conditional-collective",),
            4,
            INFO,
            (),
            None,
        ),
        (
            "ring_exchange",
            "torchrun",
            "collective-order-mismatch",
            ("rank-conditional-collective",),
            2,
            (),
            ("dump",),
            None,
        ),
        (
            "ddp_branch",
            "torchrun",
            "ddp-unused-parameters",
            ("rank-divergent-forward", "rank-conditional-collective"),
            2,
            INFO,
            (),
            None,
        ),
        (
            "short_epoch",
            "torchrun",
            "uneven-inputs",
            ("rank-exited-early", "rank-conditional-collective"),
            2,
            (),
            (),
            1,
        ),
        (
            "uneven_iterable",
            "torchrun",
            "uneven-inputs",
            ("rank-exited-early", "rank-conditional-collective"),
            3,
            INFO,
            (),
            1,
        ),
        ("left_early", "torchrun", "rank-exited-early", ("uneven-inputs",), 2, (), (), 1),
        ("early_stopping", "plain", "none", ("rank-exited-early", "unknown"), 3, (), (), None),
        ("shard_poll", "torchrun", "rank-stuck", ("unknown",), 3, (), ("dump",), 1),
        ("rejection", "torchrun", "rank-stuck", ("unknown",), 2, (), ("dump",), 1),
        ("two_locks", "torchrun", "thread-deadlock", ("rank-stuck",), 2, (), ("dump",), 1),
        ("full_queue", "torchrun", "queue-deadlock", (), 2, (), ("dump",), 1),
        ("join_before_get", "plain", "queue-deadlock", ("rank-stuck",), 2, (), ("dump",), 1),
        ("lazy_plugin", "torchrun", "import-hang", (), 2, (), ("dump",), 1),
        ("accelerate_gather", "torchrun", "preempted-or-hangup", (), 2, (), (), None),
        ("trainer_callback", "torchrun", "preempted-or-hangup", (), 2, (), (), None),
        (
            "fsdp_generate",
            "torchrun",
            "rank-divergent-forward",
            ("rank-conditional-collective",),
            2,
            DETAIL,
            (),
            None,
        ),
    ]
    found = []
    for number, (name, launch, cause, also, world, env, hooks, pick) in enumerate(rows):
        defaults = (
            ("pick", 1 if pick is None else pick),
            ("seed", 2 + number),
            ("form", ("loud", "masked")[number % 2]),
            ("when", 5),
            ("steps", 300),
        )
        ranks = None if pick is None else (pick,)
        key = f"{name}-{launch}-{number}"
        found.append(
            Recording(
                key,
                f"live/programs/{name}",
                launch,
                cause,
                ranks,
                ("undetermined", "hung") if cause == "none" else ("crashed", "hung"),
                also,
                world,
                "train.py",
                defaults,
                env,
                hooks,
            )
        )
    return found


def _launching() -> list[Recording]:
    plain = (("seed", 2), ("form", "loud"), ("steps", 4000))
    program = "live/programs/plain"
    silent = (("seed", 2), ("form", "quiet"), ("steps", 4000))
    signalled = ("crashed",)
    return [
        Recording(
            "port", program, "torchrun", "port-in-use", None, defaults=plain, before="take-port"
        ),
        Recording(
            "port-plain",
            program,
            "plain",
            "port-in-use",
            None,
            defaults=plain,
            before="take-port",
            limit_s=30,
        ),
        Recording(
            "port-info",
            program,
            "torchrun",
            "port-in-use",
            None,
            defaults=plain,
            env=INFO,
            before="take-port",
            world=4,
        ),
        Recording(
            "short",
            program,
            "short",
            "rendezvous-incomplete",
            None,
            ("crashed", "hung"),
            ("world-size-mismatch",),
            3,
            defaults=plain,
        ),
        Recording(
            "odd",
            program,
            "odd",
            "world-size-mismatch",
            None,
            ("crashed", "hung"),
            ("rendezvous-incomplete",),
            2,
            defaults=plain,
        ),
        Recording(
            "name",
            program,
            "plain",
            "hostname-resolution",
            None,
            defaults=plain,
            env=(("MASTER_ADDR", "trainer-0.lab.invalid"),),
            limit_s=90,
        ),
        Recording(
            "interface",
            program,
            "torchrun",
            "wrong-network-interface",
            None,
            defaults=plain,
            env=(("GLOO_SOCKET_IFNAME", "ib7"),),
        ),
        Recording(
            "term",
            program,
            "torchrun",
            "preempted-or-hangup",
            None,
            signalled,
            defaults=plain,
            limit_s=12,
            stop=15,
        ),
        Recording(
            "hangup",
            program,
            "torchrun",
            "preempted-or-hangup",
            None,
            signalled,
            defaults=plain,
            limit_s=14,
            stop=1,
            world=4,
            script="pretrain.py",
        ),
        Recording(
            "stops",
            program,
            "torchrun",
            "none",
            None,
            ("undetermined",),
            defaults=plain,
            limit_s=12,
            stop=9,
        ),
        Recording(
            "stops-silent",
            program,
            "torchrun",
            "none",
            None,
            ("undetermined",),
            defaults=silent,
            limit_s=12,
            stop=9,
            env=INFO,
        ),
        Recording(
            "stops-plain",
            program,
            "plain-files",
            "none",
            None,
            ("undetermined",),
            defaults=plain,
            limit_s=20,
            stop=9,
            world=3,
        ),
        Recording(
            "stuck-cut",
            "live/programs/shard_poll",
            "torchrun",
            "none",
            None,
            ("undetermined", "hung"),
            ("unknown", "rank-stuck"),
            defaults=(("pick", 1), *plain),
            timeout_s=600,
            limit_s=16,
            stop=9,
        ),
        Recording(
            "rank-kill",
            program,
            "torchrun",
            "rank-killed",
            (1,),
            signalled,
            ("host-oom-killed",),
            2,
            defaults=plain,
            before="kill-rank",
        ),
        Recording(
            "rank-kill-4",
            program,
            "torchrun",
            "rank-killed",
            (2,),
            signalled,
            ("host-oom-killed",),
            4,
            defaults=plain,
            before="kill-rank",
            env=INFO,
        ),
        Recording(
            "rank-term",
            program,
            "plain-files",
            "unknown",
            (1,),
            signalled,
            ("rank-killed", "host-oom-killed", "rank-exited-early"),
            3,
            defaults=plain,
            before="kill-rank",
        ),
        Recording(
            "old-words",
            "logs/programs/surroundings",
            "old-launch",
            "launcher-args",
            None,
            defaults=(("kind", "none"), *plain),
        ),
        Recording(
            "shm",
            "live/programs/workers",
            "torchrun",
            "shm-exhausted",
            None,
            defaults=plain,
            before="small-shm",
            limit_s=40,
        ),
    ]


def recordings() -> list[Recording]:
    return [
        *_raising(),
        *_restarted(),
        *_loading(),
        *_software(),
        *_trainer(),
        *_healthy(),
        *_illnesses(),
        *_live(),
        *_launching(),
    ]
