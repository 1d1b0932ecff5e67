"""Data as users have it: of Hugging Face datasets, Lightning, torch's IterableDataset and
webdataset. Each factory imports its own library.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from typing import Any

import torch.utils.data


def hugging_face() -> Any:
    import datasets

    return datasets.Dataset.from_dict(
        {"text": [f"row {row}" for row in range(400)], "label": [row % 2 for row in range(400)]}
    )


def hugging_face_splits() -> Any:
    import datasets

    return datasets.DatasetDict({"test": hugging_face().select(range(40)), "train": hugging_face()})


def hugging_face_stream() -> Any:
    return hugging_face().to_iterable_dataset(num_shards=4)


def data_module() -> Any:
    import lightning

    class Module(lightning.LightningDataModule):
        def setup(self, stage: str) -> None:
            assert stage == "fit"
            self.rows = torch.utils.data.TensorDataset(torch.arange(400.0).reshape(200, 2))

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(self.rows, batch_size=10, shuffle=True)

        def val_dataloader(self) -> Any:
            return [torch.utils.data.DataLoader(self.rows, batch_size=20)]

    return Module()


class Stream(torch.utils.data.IterableDataset[Any]):
    """Split over ranks and workers, or over neither; `extra` rows go to rank 0 alone."""

    def __init__(self, *, split: bool = True, rows: int = 240, extra: int = 0) -> None:
        self.split, self.rows, self.extra = split, rows, extra

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        here, all_workers = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        place, every = (rank * all_workers + here, ranks * all_workers) if self.split else (0, 1)
        for row in range(self.rows):
            if row % every == place:
                yield {"row": row}
        if self.extra and rank == 0 and here == 0 and ranks > 1:
            yield from ({"row": self.rows + row} for row in range(self.extra))


def stream() -> Stream:
    return Stream()


def stream_read_by_all() -> Stream:
    return Stream(split=False)


def stream_uneven() -> Any:
    return torch.utils.data.DataLoader(Stream(extra=40), batch_size=10, num_workers=0)


def tars() -> Any:
    import webdataset

    folder = tempfile.mkdtemp(prefix="tars-")
    for shard in range(4):
        with tarfile.open(f"{folder}/{shard:04d}.tar", "w") as tar:
            for row in range(50):
                entry, text = tarfile.TarInfo(f"{shard}-{row}.txt"), f"{shard} {row}".encode()
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
    paths = f"{folder}/{{0000..0003}}.tar"
    return (
        webdataset.WebDataset(paths, shardshuffle=False, nodesplitter=webdataset.split_by_node)
        .decode()
        .to_tuple("txt")
    )
