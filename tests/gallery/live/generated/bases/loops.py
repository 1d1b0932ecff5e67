"""Loops over plain torch: functions, a class, or one long function; wrapped by DDP, FSDP2 or
tensor parallelism; with checkpoints by torch.save or by DCP.
"""

from __future__ import annotations

HEAD = """import datetime
import logging
import os
import random
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
#: framework_imports
#: imports

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
EVAL_EVERY, SAVE_EVERY, AVERAGE_EVERY = $eval_every, $save_every, $average_every
$seen = []
#: definitions


def $record($step, value):
    with open("$history", "a") as history:
        history.write(f"{$step}\\t{value:.4f}\\n")


def $hook(layer, args, output):
    $seen.append(1)
    $step = len($seen)
    $rank = dist.get_rank()
    #: hook


def $reduce(value, $step):
    $rank = dist.get_rank()
    total = torch.tensor([value, 1.0])
    #: metrics
    dist.all_reduce(total)
    return (total[0] / total[1]).item()

"""
EVALUATE = (
    """
def $evaluate($model, $valid, $step):
    $rank = dist.get_rank()
    $model.eval()
    hits = torch.zeros(2)
    with torch.no_grad():
        for $x, $y in $valid:
            guess = $model($x).argmax(-1)
            hits += torch.tensor([float((guess == $y).sum()), float(len($y))])
    #: eval
    dist.all_reduce(hits)
    $model.train()
    return float(hits[0] / hits[1])

""",
    """
@torch.no_grad()
def $evaluate($model, $valid, $step):
    $rank, losses = dist.get_rank(), []
    $model.eval()
    for $x, $y in $valid:
        losses.append(F.cross_entropy($model($x), $y).item())
    #: eval
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, losses)
    $model.train()
    flat = [value for part in gathered for value in part]
    return sum(flat) / max(len(flat), 1)

""",
)
SAVE = {
    "torch": """
def $save($model, $opt, $step):
    $rank = dist.get_rank()
    os.makedirs("$ckpt", exist_ok=True)
    #: ckpt
    if $rank == 0:
        torch.save({"model": $model.state_dict(), "opt": $opt.state_dict(), "step": $step}, "$ckpt/last.pt")
    dist.barrier()

""",
    "dcp": """
def $save($model, $opt, $step):
    $rank = dist.get_rank()
    weights, moments = get_state_dict($model, $opt)
    #: ckpt
    dcp.save({"model": weights, "opt": moments}, checkpoint_id="$ckpt/step_last")
    if $rank == 0:
        $say(f"saved at {$step}")

""",
    "dcp-async": """
WRITES, GROUPS = [], []


def $save($model, $opt, $step):
    $rank = dist.get_rank()
    if not GROUPS:
        GROUPS.append(dist.new_group())  # the writing thread has calls of its own
    if WRITES:
        WRITES.pop().result()
    state = {"model": get_model_state_dict($model)}
    #: ckpt
    WRITES.append(dcp.async_save(state, checkpoint_id="$ckpt/latest", process_group=GROUPS[0]))

""",
    # Each rank writes its part; the step goes on when all parts are there.
    "parts-by-file": """
def $save($model, $opt, $step):
    $rank, folder = dist.get_rank(), f"$ckpt/{$step:06d}"
    os.makedirs(folder, exist_ok=True)
    #: ckpt
    torch.save($model.state_dict(), f"{folder}/part_{$rank}.tmp")
    os.rename(f"{folder}/part_{$rank}.tmp", f"{folder}/part_{$rank}.pt")
    while len([name for name in os.listdir(folder) if name.endswith(".pt")]) < dist.get_world_size():
        time.sleep(0.2)

""",
    "parts-by-store": """
def $save($model, $opt, $step):
    $rank = dist.get_rank()
    os.makedirs("$ckpt", exist_ok=True)
    #: ckpt
    torch.save($model.state_dict(), f"$ckpt/part_{$rank}.pt")
    store = dist.distributed_c10d._get_default_store()
    store.set(f"saved/{$step}/{$rank}", "1")
    store.wait([f"saved/{$step}/{other}" for other in range(dist.get_world_size())], datetime.timedelta(hours=1))

""",
}
WRAP = {
    "ddp": """
def $wrap($model):
    return DDP($model)

""",
    "fsdp2": """
def $wrap($model):
    for block in $model.blocks:
        fully_shard(block)
    return fully_shard($model)

""",
    "tp": """
def $wrap($model):
    $world = dist.get_world_size()
    shape = (2, $world // 2) if $world == 4 else (1, $world)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    for block in $model.blocks:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if shape[0] > 1:
        fully_shard($model, mesh=mesh["dp"])
    return $model

""",
}
IMPORTS = {
    "ddp": "from torch.nn.parallel import DistributedDataParallel as DDP\n",
    "fsdp2": "from torch.distributed.fsdp import fully_shard\n",
    "tp": "from torch.distributed.device_mesh import init_device_mesh\n"
    "from torch.distributed.fsdp import fully_shard\n"
    "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module\n",
    "dcp": "import torch.distributed.checkpoint as dcp\n"
    "from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict\n",
}
SETUP = """
def $setup():
    torch.set_num_threads(1)
    $rank = int(os.environ["RANK"])
    #: setup
    dist.init_process_group("gloo")
    torch.manual_seed(17)
    return dist.get_rank(), dist.get_world_size()

"""
# A rank of a tensor parallel group reads what its group reads.
SHARE = {"ddp": "$rank, $world", "fsdp2": "$rank, $world", "tp": "$rank // 2, 2"}
FUNCTIONS = """
def $train($model, $opt, $loader, $valid, $args):
    $rank, $step = dist.get_rank(), 0
    for $epoch in range($args.epochs):
        for $x, $y in $loader:
            #: loop
            $loss = F.cross_entropy($model($x), $y)
            $opt.zero_grad()
            $loss.backward()
            $opt.step()
            $step += 1
            if $step % AVERAGE_EVERY == 0:
                mean = $reduce($loss.item(), $step)
                if $rank == 0:
                    $say(f"epoch {$epoch} step {$step} loss {mean:.4f}")
            #: after
            if $rank == 0:
                $record($step, $loss.item())
            if $step % EVAL_EVERY == 0:
                score = $evaluate($model, $valid, $step)
                if $rank == 0:
                    $say(f"step {$step}: dev {score:.3f}")
            if $step % SAVE_EVERY == 0:
                $save($model, $opt, $step)
        #: epoch_end


def $main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=$workers)
    $args = parser.parse_args()
    $rank, $world = $setup()
    $model = $wrap($Net())
    $model.register_forward_hook($hook)
    $opt = torch.optim.SGD($model.parameters(), lr=$args.lr, momentum=0.9, foreach=False)
    $loader = $make_loader($per_epoch, @SHARE@, $args.workers)
    $valid = $make_loader(2, @SHARE@)
    #: begin
    $train($model, $opt, $loader, $valid, $args)
    dist.destroy_process_group()
"""
CLASS = """
class $Runner:
    def __init__(self, $args):
        self.$args = $args
        self.$rank, self.$world = $setup()
        $rank, $world = self.$rank, self.$world
        self.$loader = $make_loader($per_epoch, @SHARE@, $args["workers"])
        self.$valid = $make_loader(2, @SHARE@)
        self.$model = $wrap($Net())
        self.$model.blocks[0].register_forward_hook($hook) if hasattr(self.$model, "blocks") else self.$model.register_forward_hook($hook)
        self.$opt = torch.optim.AdamW(self.$model.parameters(), lr=$args["lr"], foreach=False)
        self.$step = 0
        #: begin

    def one_step(self, $x, $y):
        $rank, $step, $model = self.$rank, self.$step, self.$model
        #: loop
        self.$opt.zero_grad(set_to_none=True)
        $loss = F.cross_entropy($model($x), $y)
        $loss.backward()
        self.$opt.step()
        self.$step += 1
        return $loss.item()

    def after_step(self, value):
        $rank, $step = self.$rank, self.$step
        #: after
        if $rank == 0:
            $record($step, value)
        if $step % AVERAGE_EVERY == 0:
            mean = $reduce(value, $step)
            if $rank == 0:
                $say(f"{$step} {mean:.4f}")
        if $step % SAVE_EVERY == 0:
            $save(self.$model, self.$opt, $step)
        if $step % EVAL_EVERY == 0:
            $evaluate(self.$model, self.$valid, $step)

    def $train(self):
        for $epoch in range(self.$args["epochs"]):
            for $x, $y in self.$loader:
                self.after_step(self.one_step($x, $y))
            self.on_epoch_end($epoch)

    def on_epoch_end(self, $epoch):
        $rank, $step = self.$rank, self.$step
        #: epoch_end
        self.last_epoch = $epoch


def $main():
    $args = {"lr": float(os.environ.get("LR", "0.001")), "epochs": 5000, "workers": $workers}
    runner = $Runner($args)
    try:
        runner.$train()
    finally:
        dist.destroy_process_group()
"""
INLINE = """
def $main():
    $rank, $world = $setup()
    $loader = $make_loader($per_epoch, @SHARE@, $workers)
    $valid = $make_loader(2, @SHARE@)
    $model = $wrap($Net())
    $model.register_forward_hook($hook)
    $opt = torch.optim.Adam($model.parameters(), 2e-3, foreach=False)
    $step, began = 0, time.time()
    #: begin
    while $step < 200_000:
        for $x, $y in $loader:
            #: loop
            logits = $model($x)
            $loss = F.cross_entropy(logits, $y)
            $loss.backward()
            $opt.step()
            $opt.zero_grad()
            #: after
            $step += 1
            if $step % AVERAGE_EVERY == 0:
                value = $reduce($loss.item(), $step)
                if $rank == 0:
                    $say(f"step={$step} loss={value:.3f} t={time.time() - began:.1f}")
            if $step % SAVE_EVERY == 0:
                $save($model, $opt, $step)
            if $rank == 0:
                $record($step, $loss.item())
            if $step % EVAL_EVERY == 0:
                $evaluate($model, $valid, $step)
        #: epoch_end
    dist.destroy_process_group()
"""
STYLES = (FUNCTIONS, CLASS, INLINE)
