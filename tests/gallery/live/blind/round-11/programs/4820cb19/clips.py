import io

import numpy as np
import torch
import webdataset as wds


def decode(sample):
    frames = np.load(io.BytesIO(sample["npy"]))
    label = int(sample["cls"])
    return torch.from_numpy(frames.astype(np.float32)), label


def make_loader(urls, batch_size, workers=1):
    dataset = (
        wds.WebDataset(f"pipe:curl -s -L --retry 3 {urls}", nodesplitter=wds.split_by_node,
                       shardshuffle=False, handler=wds.warn_and_continue)
        .repeat()
        .map(decode)
        .batched(batch_size, partial=False)
    )
    return wds.WebLoader(dataset, batch_size=None, num_workers=workers)
