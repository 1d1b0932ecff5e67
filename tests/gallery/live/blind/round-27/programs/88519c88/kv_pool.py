import torch

BLOCK = 16
POOL_BYTES = 132 * 1024


class KVPool:
    """Paged key/value memory of this rank's rollout engine."""

    def __init__(self, dim, reserved_bytes):
        block_bytes = BLOCK * dim * 2 * 4
        self.total = (POOL_BYTES - reserved_bytes) // block_bytes
        self.data = torch.zeros(self.total, BLOCK, 2 * dim)
        self.free = self.total

    @staticmethod
    def blocks(tokens):
        return -(-tokens // BLOCK)

    def take(self, tokens):
        self.free -= self.blocks(tokens)

    def give_back(self, tokens):
        self.free += self.blocks(tokens)
