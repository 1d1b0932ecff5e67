import argparse

import lightning as L
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from posenet.callbacks import ConfmapViz, MetricsFile
from posenet.data import KeypointFrames
from posenet.module import ConfmapModule


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=1)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--viz-every", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--out", default="runs/default")
    a = p.parse_args()
    L.seed_everything(5)
    train, val = KeypointFrames(480, seed=1), KeypointFrames(64, seed=2)
    tl = DataLoader(train, a.batch_size, shuffle=True)
    vl = DataLoader(val, a.batch_size)
    trainer = L.Trainer(
        accelerator="cpu", devices=a.devices, max_epochs=a.epochs, logger=False,
        strategy=DDPStrategy(process_group_backend="gloo"), enable_progress_bar=False,
        enable_checkpointing=False, num_sanity_val_steps=0, enable_model_summary=False,
        callbacks=[ConfmapViz(val, a.out + "/viz", a.viz_every), MetricsFile(a.out + "/metrics.jsonl")])
    trainer.fit(ConfmapModule(), tl, vl)


if __name__ == "__main__":
    main()
