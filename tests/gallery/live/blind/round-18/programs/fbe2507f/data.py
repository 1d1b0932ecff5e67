import numpy as np
import torch


class Tiles:
    """Square tiles with a mask, read from one strip per scene."""

    def __init__(self, scenes=48, tiles=64, size=24, seed=5):
        rng = np.random.default_rng(seed)
        self.size = size
        self.strips = []
        for s in range(scenes):
            width = tiles * size
            if s == scenes - 2:
                width -= size // 3
            img = rng.standard_normal((3, size, width)).astype("float32")
            self.strips.append((img, (img.mean(0) > 0).astype("int64")))
        self.tiles = tiles

    def __len__(self):
        return len(self.strips) * self.tiles

    def __getitem__(self, i):
        s, t = divmod(i, self.tiles)
        img, mask = self.strips[s]
        a = t * self.size
        x = torch.from_numpy(img[:, :, a:a + self.size].copy())
        y = torch.from_numpy(mask[:, a:a + self.size].copy())
        return x.view(3, self.size, self.size), y.view(self.size, self.size)


def scene_order(num_scenes, tiles, rank, world, epoch):
    mine = [s for s in range(num_scenes) if s % world == rank]
    g = torch.Generator().manual_seed(epoch)
    # a few scenes per epoch, the window moves on from epoch to epoch
    take = 2
    first = (epoch * take) % len(mine)
    chosen = [mine[(first + k) % len(mine)] for k in range(take)]
    idx = [s * tiles + t for s in chosen for t in range(tiles)]
    return [idx[j] for j in torch.randperm(len(idx), generator=g).tolist()]
