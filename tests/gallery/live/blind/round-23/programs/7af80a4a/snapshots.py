import mmap
import tempfile

import torch
import torch.distributed as dist


class EmaSnapshot:
    """This rank's slice of the averaged weights, in a mapping the peers may read."""

    def __init__(self, step, vector, group):
        self.step = step
        self.group = group
        rank, world = dist.get_rank(group), dist.get_world_size(group)
        part = vector.chunk(world)[rank].contiguous()
        self.numel = part.numel()
        self._file = tempfile.TemporaryFile()
        self._file.truncate(max(part.numel() * 4, 1))
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._map[:part.numel() * 4] = part.numpy().tobytes()

    def slice(self):
        return torch.frombuffer(bytearray(self._map), dtype=torch.float32)[:self.numel]

    def close(self):
        if self._map is not None:
            dist.barrier(group=self.group)
            self._map.close()
            self._file.close()
            self._map = None

    def __del__(self):
        self.close()


class EmaWeights:
    def __init__(self, model, group, decay=0.98, every=40):
        self.decay, self.every, self.group = decay, every, group
        self.vector = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
        self.current = None

    @torch.no_grad()
    def update(self, step, model):
        self.vector.lerp_(torch.nn.utils.parameters_to_vector(model.parameters()), 1 - self.decay)
        if step % self.every == 0:
            self.current = EmaSnapshot(step, self.vector, self.group)
            return self.current
        return None
