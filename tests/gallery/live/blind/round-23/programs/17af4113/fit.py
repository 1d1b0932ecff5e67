import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from embed_client import DIM, EmbeddingClient


class Clicks(Dataset):
    def __len__(self):
        return 200000

    def __getitem__(self, i):
        return (i * 131) % 5000, float((i * 131) % 5000 % 3 == 0)


class Ranker(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def on_fit_start(self):
        self.embeddings = EmbeddingClient(self.global_rank)
        self.clock = time.perf_counter()

    def training_step(self, batch, batch_idx):
        ids, clicked = batch
        rows = self.embeddings.lookup(ids.tolist())
        time.sleep(0.12)
        return F.binary_cross_entropy_with_logits(self.net(rows).squeeze(-1), clicked.float())

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if batch_idx % 5 == 0 and self.global_rank == 0:
            now = time.perf_counter()
            print(f"batch {batch_idx} loss {outputs['loss'].item():.4f} elapsed {now - self.clock:.1f}s", flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(5)
    loader = DataLoader(Clicks(), batch_size=16, num_workers=0)
    trainer = L.Trainer(accelerator="cpu", devices=3, strategy=DDPStrategy(process_group_backend="gloo"),
                        max_epochs=20, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Ranker(), loader)


if __name__ == "__main__":
    main()
