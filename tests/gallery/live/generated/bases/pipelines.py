"""Pipelines: stages that send and receive by hand, and torch.distributed.pipelining."""

from __future__ import annotations

STAGE = """
class $Net(nn.Module):
    \"\"\"One stage of the pipeline.\"\"\"

    def __init__(self, stage, stages, width=16):
        super().__init__()
        self.blocks = nn.ModuleList([$Block(width) for _ in range(2)])
        self.head = nn.Linear(width, 4) if stage == stages - 1 else nn.Identity()

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)
"""
BY_HAND = """
def $train($model, $opt, $loader, $valid):
    $rank, $world, $step = dist.get_rank(), dist.get_world_size(), 0
    first, final = $rank == 0, $rank == $world - 1
    while True:
        for $x, $y in $loader:
            #: loop
            kept, $loss = [], torch.zeros(())
            for part, gold in zip($x.chunk(2), $y.chunk(2)):
                hidden = part
                if not first:
                    hidden = torch.empty(len(part), 16)
                    dist.recv(hidden, src=$rank - 1)
                    hidden.requires_grad_(True)
                output = $model(hidden)
                if not final:
                    dist.send(output.detach(), dst=$rank + 1)
                kept.append((hidden, output, gold))
            for hidden, output, gold in kept:
                if final:
                    $loss = F.cross_entropy(output, gold)
                    $loss.backward()
                else:
                    grad = torch.empty_like(output)
                    dist.recv(grad, src=$rank + 1)
                    output.backward(grad)
                if not first:
                    dist.send(hidden.grad, dst=$rank - 1)
            $opt.step()
            $opt.zero_grad()
            $step += 1
            #: after
            if $step % AVERAGE_EVERY == 0:
                mean = $reduce($loss.item(), $step)
                if final:
                    $say(f"step {$step} loss {mean:.3f}")
            if first:
                $record($step, $loss.item())
            if $step % EVAL_EVERY == 0:
                $evaluate($model, $valid, $step)
            if $step % SAVE_EVERY == 0:
                $save($model, $opt, $step)
        #: epoch_end
"""
SCHEDULED = """
def $train($model, $opt, $loader, $valid):
    $rank, $world, $step = dist.get_rank(), dist.get_world_size(), 0
    stage = PipelineStage($model, $rank, $world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=F.cross_entropy)
    while True:
        for $x, $y in $loader:
            #: loop
            losses = []
            if $rank == 0:
                schedule.step($x)
            elif $rank == $world - 1:
                schedule.step(target=$y, losses=losses)
            else:
                schedule.step()
            $opt.step()
            $opt.zero_grad()
            $step += 1
            #: after
            value = float(sum(losses)) if losses else 0.0
            if $step % AVERAGE_EVERY == 0:
                $reduce(value, $step)
            if $rank == 0:
                $record($step, value)
            if $step % EVAL_EVERY == 0:
                $evaluate($model, $valid, $step)
            if $step % SAVE_EVERY == 0:
                $save($model, $opt, $step)
        #: epoch_end
"""
EVALUATE = """
def $evaluate($model, $valid, $step):
    $rank = dist.get_rank()
    sizes = [None] * dist.get_world_size()
    weight = sum(float(tensor.norm()) for tensor in $model.parameters())
    #: eval
    dist.all_gather_object(sizes, weight)
    return sum(sizes)

"""
SAVE = """
def $save($model, $opt, $step):
    $rank = dist.get_rank()
    os.makedirs("$ckpt", exist_ok=True)
    #: ckpt
    torch.save($model.state_dict(), f"$ckpt/stage_{$rank}.pt")
    dist.barrier()

"""
MAIN = """

def $main():
    $rank, $world = $setup()
    $model = $Net($rank, $world)
    $model.register_forward_hook($hook)
    $opt = torch.optim.SGD($model.parameters(), lr=0.01)
    $loader = $make_loader($per_epoch, 0, 1, $workers)
    $valid = $make_loader(2, 0, 1)
    #: begin
    $train($model, $opt, $loader, $valid)
"""
IMPORTS = "from torch.distributed.pipelining import PipelineStage, ScheduleGPipe\n"
