import os
import time
from datetime import timedelta

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

from shard_stream import CorpusSampler, ShardedTokens

BATCH, SAMPLES_PER_SHARD = 6, 48


class TinyLM(L.LightningModule):
    def __init__(self, vocab=128, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)
        self.began = time.time()

    def training_step(self, batch, batch_idx):
        x, y = batch
        hidden, _ = self.rnn(self.embed(x))
        time.sleep(0.13)
        loss = F.cross_entropy(self.out(hidden).transpose(1, 2), y)
        if self.global_step % 10 == 0 and self.trainer.is_global_zero:
            print(f"{time.time() - self.began:7.1f}s epoch {self.current_epoch} step {self.global_step} "
                  f"loss {loss.item():.3f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


class Corpus(L.LightningDataModule):
    def __init__(self, root):
        super().__init__()
        self.root = root

    def train_dataloader(self):
        rank, world = self.trainer.global_rank, self.trainer.world_size
        data = ShardedTokens(os.path.join(self.root, "bucket"), os.path.join(self.root, f"cache-rank{rank}"),
                             SAMPLES_PER_SHARD, cache_limit=20_000)
        return DataLoader(data, batch_size=BATCH, num_workers=1, prefetch_factor=4,
                          sampler=CorpusSampler(len(data), rank, world, BATCH))


def main():
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, max_epochs=500, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(hours=1)))
    trainer.fit(TinyLM(), datamodule=Corpus(os.environ["CORPUS_DIR"]))


if __name__ == "__main__":
    main()
