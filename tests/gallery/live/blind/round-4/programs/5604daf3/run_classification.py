import argparse

import torch
import torch.nn as nn
from transformers import Trainer, TrainingArguments

from vision.augment import RandomFog
from vision.dataset import RoadScenes, worker_init
from vision.misc import tie_to_parent


class SmallNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))

    def forward(self, pixel_values, labels=None):
        logits = self.body(pixel_values)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class SceneTrainer(Trainer):
    def get_train_dataloader(self):
        dl = super().get_train_dataloader()
        return dl


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--output_dir")
    ap.add_argument("--num_workers", type=int, default=2)
    a = ap.parse_args()
    tie_to_parent()
    args = TrainingArguments(
        output_dir=a.output_dir, per_device_train_batch_size=8, num_train_epochs=200, learning_rate=1e-3,
        logging_steps=10, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
        dataloader_num_workers=a.num_workers, dataloader_persistent_workers=True, ddp_find_unused_parameters=False)
    train = RoadScenes(2400, transform=RandomFog(0.3, 0.8))
    trainer = SceneTrainer(model=SmallNet(), args=args, train_dataset=train)
    worker_init(trainer)
    trainer.train()


if __name__ == "__main__":
    main()
