import os

import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

from tiles import TileSet


class TileNet(nn.Module):
    def __init__(self, classes=10, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, pixel_values, labels=None):
        logits = self.head(self.features(pixel_values))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Preview(TrainerCallback):
    """After every evaluation, stores what the model says about a few training mosaics."""

    def __init__(self, dataset, out, count=4):
        self.dataset = dataset
        self.out = out
        self.count = count

    @torch.no_grad()
    def on_evaluate(self, args, state, control, model=None, **kwargs):
        if not state.is_world_process_zero:
            return
        rows = [self.dataset[i] for i in range(self.count)]
        images = torch.stack([r["pixel_values"] for r in rows])
        probs = model(pixel_values=images)["logits"].softmax(-1)
        np.savez(f"{self.out}/preview-{state.global_step}.npz", images=images.numpy(), probs=probs.numpy())


class Progress(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            print(f"[{state.epoch:.2f}] step {state.global_step} {logs}", flush=True)


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    root = os.environ["WORK_DIR"]
    torch.set_num_threads(1)
    train = TileSet(f"{root}/train", length=640)
    val = TileSet(f"{root}/val", length=64)
    args = TrainingArguments(
        output_dir=f"{root}/out",
        use_cpu=True,
        ddp_backend="gloo",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        num_train_epochs=50,
        learning_rate=1e-3,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        dataloader_num_workers=1,
        report_to="none",
        disable_tqdm=True,
        seed=5,
    )
    trainer = Trainer(
        model=TileNet(),
        args=args,
        train_dataset=train,
        eval_dataset=val,
        compute_metrics=accuracy,
        callbacks=[Preview(train, root), Progress()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
