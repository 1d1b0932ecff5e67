import lightning as L
import numpy as np
import torch
import webdataset as wds


def decode(sample):
    img = np.frombuffer(sample["img"], dtype=np.uint8).reshape(3, 32, 32)
    return torch.from_numpy(img.astype(np.float32) / 127.5 - 1.0), int(sample["cls"])


class ShardedImages(L.LightningDataModule):
    def __init__(self, base_url, batch_size=12, rate="16M"):
        super().__init__()
        self.pipe = f"pipe:curl -s -f --retry 4 --limit-rate {rate} {base_url}/"
        self.batch_size = batch_size

    def train_dataloader(self):
        ds = (
            wds.WebDataset(self.pipe + "train-{000..009}.tar", resampled=True, nodesplitter=wds.split_by_node, handler=wds.warn_and_continue)
            .shuffle(120, initial=60)
            .map(decode)
            .batched(self.batch_size, partial=False)
        )
        return wds.WebLoader(ds, batch_size=None, num_workers=1, prefetch_factor=16).with_epoch(20000)

    def val_dataloader(self):
        ds = (
            wds.WebDataset(self.pipe + "val-{000..001}.tar", shardshuffle=False, nodesplitter=wds.split_by_node)
            .map(decode)
            .batched(32, partial=False)
        )
        return wds.WebLoader(ds, batch_size=None, num_workers=0)
