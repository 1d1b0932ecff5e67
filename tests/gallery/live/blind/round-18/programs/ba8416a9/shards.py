import glob
import os

import lightning as L
import numpy as np
import torch
import webdataset as wds


def to_pair(sample):
    return torch.from_numpy(sample["x.npy"].astype(np.float32)), sample["y.cls"]


class Shards(L.LightningDataModule):
    def __init__(self, root, batch_size=16, epoch_batches=500):
        super().__init__()
        self.urls = sorted(glob.glob(os.path.join(root, "q-*.tar")))
        self.batch_size, self.epoch_batches = batch_size, epoch_batches

    def train_dataloader(self):
        ds = (wds.WebDataset(self.urls[:-3], resampled=True, nodesplitter=wds.split_by_node, seed=self.trainer.global_rank)
              .shuffle(200).decode().map(to_pair).batched(self.batch_size))
        return wds.WebLoader(ds, batch_size=None, num_workers=1).with_epoch(self.epoch_batches)

    def val_dataloader(self):
        ds = wds.WebDataset(self.urls[-3:], shardshuffle=False, nodesplitter=None).decode().map(to_pair)
        rank, world = self.trainer.global_rank, self.trainer.world_size
        return wds.WebLoader(ds.slice(rank, 450, world).batched(30), batch_size=None, num_workers=0)
