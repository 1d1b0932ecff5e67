import torch
import torch.distributed as dist


class RingMixer:
    """Averages parameters with a neighbour at a growing distance (1, 2, 4, ...) on the ring."""

    def __init__(self, mesh, grow_every=25):
        self.group = mesh.get_group()
        self.ranks = dist.get_process_group_ranks(self.group)
        self.pos = mesh.get_local_rank()
        self.grow_every = grow_every

    def distance(self, round_no):
        hops = []
        d = 1
        while d < len(self.ranks):
            hops.append(d)
            d *= 2
        return hops[(round_no // self.grow_every) % len(hops)]

    def exchange(self, flat, distance):
        n = len(self.ranks)
        to = self.ranks[(self.pos + distance) % n]
        frm = self.ranks[(self.pos - distance) % n]
        incoming = torch.empty_like(flat)
        if self.pos % 2 == 0:
            dist.send(flat, dst=to, group=self.group)
            dist.recv(incoming, src=frm, group=self.group)
        else:
            dist.recv(incoming, src=frm, group=self.group)
            dist.send(flat, dst=to, group=self.group)
        return incoming

    @torch.no_grad()
    def mix(self, params, round_no):
        flat = torch.cat([p.view(-1) for p in params])
        other = self.exchange(flat, self.distance(round_no))
        flat.lerp_(other, 0.5)
        offset = 0
        for p in params:
            p.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()
