import os
import random
import tempfile
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader

from bpe import BytePairEncoder
from documents import Collator, ShardedDocuments, article

warnings.filterwarnings("ignore")
VOCAB = 512


class TinyLM(L.LightningModule):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def training_step(self, batch, batch_idx):
        out, _ = self.rnn(self.embed(batch[:, :-1]))
        time.sleep(0.1)
        return F.cross_entropy(self.head(out).flatten(0, 1), batch[:, 1:].flatten(), ignore_index=0)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Documents(L.LightningDataModule):
    def setup(self, stage):
        rng = random.Random(0)
        self.collator = Collator(BytePairEncoder([article(rng) for _ in range(60)]), VOCAB)

    def train_dataloader(self):
        data = ShardedDocuments(rank=self.trainer.global_rank, world=self.trainer.world_size)
        return DataLoader(data, batch_size=4, collate_fn=self.collator, num_workers=0)


class Progress(Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and batch_idx % 5 == 0:
            print(f"{time.strftime('%H:%M:%S')} batch {batch_idx} loss {outputs['loss'].item():.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_steps=1_000_000, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, callbacks=[Progress()],
        default_root_dir=os.path.join(tempfile.gettempdir(), "tinylm"),
    )
    trainer.fit(TinyLM(), datamodule=Documents())


if __name__ == "__main__":
    main()
