import logging
import logging.handlers
import os
import queue
import threading
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix

from shards import Shards

torch.set_num_threads(1)
log = logging.getLogger("quality")


class QualityNet(L.LightningModule):
    def __init__(self, classes=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1),
                                 nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(288, classes))
        self.acc = MulticlassAccuracy(classes)
        self.confusion = MulticlassConfusionMatrix(classes)

    def training_step(self, batch, i):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, i):
        x, y = batch
        p = sum(self.net(v).softmax(-1) for v in (x, x + 0.05, x - 0.05, 1.1 * x, 0.9 * x))
        self.acc.update(p, y)
        self.confusion.update(p, y)

    def on_validation_epoch_end(self):
        cm = self.confusion.compute()
        self.confusion.reset()
        self.log("val_acc", self.acc)
        if self.trainer.is_global_zero:
            log.info("epoch %d diagonal %s", self.current_epoch, cm.diagonal().tolist())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


class Watch(L.Callback):
    def on_train_start(self, trainer, pl_module):
        self.path = os.path.join(os.environ["RUN_DIR"], f"beat-{trainer.global_rank}")
        threading.Thread(target=self.poll, daemon=True, name="stop-file").start()

    def poll(self):
        while not os.path.exists(os.path.join(os.environ["RUN_DIR"], "STOP")):
            time.sleep(1.0)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if batch_idx % 30 == 0:
            with open(self.path, "w") as f:
                f.write(f"{trainer.global_step} {time.time()}")
            if trainer.is_global_zero:
                log.info("step %d loss %.4f", trainer.global_step, outputs["loss"].item())


def setup_logging():
    q = queue.Queue(-1)
    out = logging.StreamHandler()
    out.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.handlers.QueueListener(q, out).start()
    log.addHandler(logging.handlers.QueueHandler(q))
    log.setLevel(logging.INFO)
    log.propagate = False


def main():
    L.seed_everything(0)
    setup_logging()
    root = os.environ["RUN_DIR"]
    ckpt = ModelCheckpoint(dirpath=os.path.join(root, "ckpt"), monitor="val_acc", mode="max", save_top_k=2, save_last=True)
    trainer = L.Trainer(accelerator="cpu", devices=3, strategy="ddp", max_epochs=2000, use_distributed_sampler=False,
                        logger=False, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                        default_root_dir=root, callbacks=[ckpt, Watch()])
    trainer.fit(QualityNet(), datamodule=Shards(os.path.join(root, "shards")))


if __name__ == "__main__":
    main()
