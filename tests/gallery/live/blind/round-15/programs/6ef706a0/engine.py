import torch
import torch.distributed as dist

from stages import Stage, flow_loss


class PipeEngine:
    """Fill-drain pipeline over the ranks of the default group."""

    def __init__(self, args):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.first, self.last = self.rank == 0, self.rank == self.world - 1
        self.args = args
        self.shape = (args.micro_size, args.frames, args.dim)
        self.module = Stage(self.rank, self.world, args.dim, args.latent, args.depth)
        self.opt = torch.optim.AdamW(self.module.parameters(), lr=2e-4)

    def _recv_input(self, grad):
        x = torch.empty(self.shape)
        dist.recv(x, src=self.rank - 1)
        return x.requires_grad_(grad)

    def train_batch(self, stream):
        args, kept = self.args, []
        self.opt.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(args.micro_batches):
            target = None
            if self.first or self.last:
                noised, target = stream.next()
            x = noised if self.first else self._recv_input(True)
            y = self.module(x)
            if self.last:
                y = flow_loss(y, target) / args.micro_batches
                total += y.item()
            else:
                dist.send(y.detach(), dst=self.rank + 1)
            kept.append((x, y))
        for x, y in kept:
            if self.last:
                y.backward()
            else:
                g = torch.empty(self.shape)
                dist.recv(g, src=self.rank + 1)
                y.backward(g)
            if not self.first:
                dist.send(x.grad, dst=self.rank - 1)
        self.opt.step()
        return total

    @torch.no_grad()
    def eval_batch(self, stream):
        total = 0.0
        for _ in range(self.args.micro_batches):
            if self.first:
                x, target = stream.next()
                dist.send(target.contiguous(), dst=self.world - 1)
            else:
                x = self._recv_input(False)
            y = self.module(x)
            if self.last:
                target = torch.empty_like(y)
                dist.recv(target, src=0)
                total += flow_loss(y, target).item() / self.args.micro_batches
            else:
                dist.send(y, dst=self.rank + 1)
        return total
