import glob
import os
import queue
import threading

import torch
import webdataset as wds

_END = object()


def shard_pipeline(root, rank, world, batch_size):
    urls = sorted(glob.glob(os.path.join(root, "kws-*.tar")))
    return (
        wds.WebDataset(urls[rank::world], shardshuffle=False, nodesplitter=None, empty_check=False)
        .shuffle(64)
        .decode()
        .to_tuple("feat.npy", "cls")
        .batched(batch_size, partial=False)
    )


class Prefetch:
    def __init__(self, source, depth=4):
        self.source = source
        self.depth = depth

    def _fill(self, out):
        for item in self.source:
            out.put(item)
        out.put(_END)

    def __iter__(self):
        out = queue.Queue(self.depth)
        worker = threading.Thread(target=self._fill, args=(out,), daemon=True, name="prefetch")
        worker.start()
        while (item := out.get()) is not _END:
            feats, labels = item
            yield torch.as_tensor(feats), torch.as_tensor(labels)
