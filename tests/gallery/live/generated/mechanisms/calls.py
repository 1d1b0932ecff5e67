"""The ranks do not make the same calls."""

from __future__ import annotations

from tests.gallery.live.generated.fault import Fault, Situation, mechanism, minority, one, under

LOOPS = ("ddp", "fsdp2", "tp", "datasets", "dcp", "pipeline-by-hand", "pipeline-scheduled")
BY_DDP = ("ddp", "datasets")
OTHER = ("collective-order-mismatch",)


def lone_call(s: Situation) -> str:
    calls = [
        "dist.barrier()",
        'dist.all_gather_object([None] * dist.get_world_size(), {"step": $step})',
        f"dist.reduce(torch.ones(3), dst={s.rank})",
        f"dist.gather_object($step, [None] * dist.get_world_size(), dst={s.rank})",
    ]
    if s.framework == "accelerate" and s.place != "hook":
        calls += ["accelerator.wait_for_everyone()", "accelerator.gather(torch.ones(2))"]
    return s.rng.choice(calls)


@mechanism("calls", rank=0)
def call_of_the_main_rank(s: Situation) -> Fault:
    code = under(s.when, f'$say(f"best so far at {{$step}}")\n{lone_call(s)}')
    return Fault("rank-conditional-collective", minority(0, s.world), also=OTHER, code=code)


@mechanism("calls")
def call_of_one_rank(s: Situation) -> Fault:
    code = under(s.when, lone_call(s))
    return Fault("rank-conditional-collective", minority(s.rank, s.world), also=OTHER, code=code)


@mechanism("calls")
def call_behind_a_function(s: Situation) -> Fault:
    definitions = f"""
def $sync($step):
    info = {{"step": $step, "rng": random.random()}}
    {lone_call(s).replace("accelerator.wait_for_everyone()", "dist.barrier()").replace("accelerator.gather(torch.ones(2))", "dist.barrier()")}
    return info

"""
    code = under(s.when, "latest = $sync($step)")
    return Fault(
        "rank-conditional-collective",
        minority(s.rank, s.world),
        also=OTHER,
        code=code,
        definitions=definitions,
    )


@mechanism("calls", places=("eval", "metrics", "ckpt"), frameworks=(*LOOPS, "accelerate"))
def early_return(s: Situation) -> Fault:
    code = under(s.when, '$say(f"nothing new at {$step}")\nreturn 0.0')
    also = (*OTHER, "collective-shape-mismatch")
    return Fault("rank-conditional-collective", minority(s.rank, s.world), also=also, code=code)


@mechanism("calls")
def swallowed_exception(s: Situation) -> Fault:
    call = s.rng.choice(["dist.barrier()", "dist.barrier(async_op=True).wait()"])
    definitions = f"""
def $clean($step, $rank):
    if {s.when}:
        raise {s.rng.choice(["ValueError('empty window')", "KeyError('length')", "ZeroDivisionError('no rows')"])}
    return $step // 2

"""
    code = f"""
try:
    size = $clean($step, $rank)
    {call}
except {s.rng.choice(["Exception", "(ValueError, KeyError, ArithmeticError)"])} as problem:
    $say(f"summary left out: {{problem!r}}")
"""
    return Fault(
        "rank-conditional-collective",
        minority(s.rank, s.world),
        also=(*OTHER, "user-exception"),
        code=code,
        definitions=definitions,
    )


@mechanism("calls")
def swapped_order(s: Situation) -> Fault:
    code = f"""
calls = [dist.barrier, lambda: dist.all_gather_object([None] * dist.get_world_size(), $step)]
for call in calls[::-1] if {s.when} else calls:
    call()
"""
    ranks = minority(s.rank, s.world)
    return Fault(
        "collective-order-mismatch", ranks, also=("rank-conditional-collective",), code=code
    )


@mechanism("calls", places=("loop", "after", "eval", "ckpt"))
def other_size(s: Situation) -> Fault:
    # gloo ends a rank that receives more than it expects. Segments of exactly 1 MiB fit each other,
    # so that the rank with more of them waits for the rest.
    code = under(
        f"$step >= {s.step}",
        f"""
count = dist.get_world_size() * 2**20
table = torch.zeros(2 * count if {s.who} else count)
dist.all_reduce(table)
""",
    )
    also = ("rank-conditional-collective", *OTHER)
    return Fault("collective-shape-mismatch", minority(s.rank, s.world), also=also, code=code)


@mechanism("calls", places=("loop",), frameworks=BY_DDP)
def no_gradient_on_one_rank(s: Situation) -> Fault:
    code = under(s.when, "$model.module.head.requires_grad_(False)")
    return Fault(
        "ddp-unused-parameters",
        minority(s.rank, s.world),
        also=("rank-divergent-forward", "rank-conditional-collective"),
        code=code,
        inserts={"after": "dist.barrier()"},
    )


@mechanism("calls", places=("loop",), frameworks=("fsdp2",))
def one_more_forward(s: Situation) -> Fault:
    code = under(s.when, "with torch.no_grad():\n    teacher = $model($x)")
    also = ("rank-conditional-collective", *OTHER)
    return Fault("rank-divergent-forward", minority(s.rank, s.world), also=also, code=code)


@mechanism("calls", places=("loop", "after", "eval", "ckpt", "metrics"))
def receive_without_send(s: Situation) -> Fault:
    other = s.rng.choice([rank for rank in range(s.world) if rank != s.rank])
    code = under(s.when, f"fresh = torch.zeros(8)\ndist.recv(fresh, src={other})")
    ranks = [[s.rank], [other], sorted((s.rank, other))]
    return Fault("rank-conditional-collective", ranks, also=OTHER, code=code)


@mechanism("calls", places=("loop", "after", "eval", "ckpt"))
def ring_of_sends(s: Situation) -> Fault:
    code = under(
        f"$step >= {s.step}",
        """
count = dist.get_world_size()
own, theirs = torch.full((200_000,), 1.0), torch.empty(200_000)
dist.send(own, dst=($rank + 1) % count)
dist.recv(theirs, src=($rank - 1) % count)
""",
    )
    ranks = [[], list(range(s.world))]
    return Fault(
        "collective-order-mismatch", ranks, also=("rank-conditional-collective",), code=code
    )


@mechanism("calls", places=("loop", "after", "eval", "ckpt"))
def group_of_some_ranks(s: Situation) -> Fault:
    code = under(s.when, f"group = dist.new_group([0, {s.rank or 1}])")
    return Fault("rank-conditional-collective", minority(s.rank, s.world), also=OTHER, code=code)


@mechanism("calls", places=("loop", "after", "eval", "ckpt", "metrics"))
def key_that_is_not_set(s: Situation) -> Fault:
    code = under(
        s.when,
        """
store = dist.distributed_c10d._get_default_store()
plan = store.get(f"plan/{$step}")
""",
    )
    return Fault("rank-stuck", one(s.rank), also=("rank-conditional-collective",), code=code)


@mechanism(
    "calls",
    places=("shard",),
    frameworks=("ddp", "fsdp2"),
    options={"data": "cut", "per_epoch": "12"},
)
def fewer_batches(s: Situation) -> Fault:
    call = s.rng.choice(
        ["dist.barrier()", "dist.all_gather_object([None] * dist.get_world_size(), $step)"]
    )
    code = under(
        f"{s.who} and len($indices) > 40", f"$indices = $indices[{8 * s.rng.randint(1, 3)}:]"
    )
    return Fault(
        "uneven-inputs",
        minority(s.rank, s.world),
        also=("rank-conditional-collective",),
        code=code,
        inserts={"epoch_end": call},
    )
