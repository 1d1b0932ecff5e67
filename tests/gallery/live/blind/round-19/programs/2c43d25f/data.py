import torch
from torch.utils.data import IterableDataset


class Scenes(IterableDataset):
    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank

    def __iter__(self):
        c = self.cfg
        gen = torch.Generator().manual_seed(4084 + self.rank)
        while True:
            patches = torch.randn(c["batch_size"], c["patches"], c["patch_dim"], generator=gen)
            label = torch.randint(c["classes"], (c["batch_size"],), generator=gen)
            annotated = torch.rand(c["batch_size"], generator=gen) < c["annotated_fraction"]
            mask = torch.randint(c["mask_channels"], (c["batch_size"], c["patches"]), generator=gen)
            yield patches, label, annotated, mask
