import os

import lightning as L
import torch
from torch import nn

from data import SensorData
from events import Telemetry, log, open_events

torch.set_num_threads(1)


class Forecaster(L.LightningModule):
    def __init__(self, channels=6, hidden=64):
        super().__init__()
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)

    def training_step(self, batch, _):
        x, y = batch
        loss = (self.out(self.rnn(x)[0]) - y).pow(2).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 2e-3)


class EventStream(L.Callback):
    def setup(self, trainer, pl_module, stage):
        if trainer.is_global_zero:
            self.proc = open_events(os.environ["RUN_DIR"])

    def on_train_start(self, trainer, pl_module):
        if trainer.is_global_zero:
            Telemetry().start()


class Report(L.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero and batch_idx % 40 == 0:
            print(f"epoch {trainer.current_epoch} batch {batch_idx} loss {outputs['loss'].item():.4f}", flush=True)


def main():
    L.seed_everything(1)
    run_dir = os.environ["RUN_DIR"]
    trainer = L.Trainer(accelerator="cpu", devices=3, strategy="ddp", max_epochs=500, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=run_dir, callbacks=[EventStream(), Report()])
    trainer.fit(Forecaster(), SensorData(run_dir))


if __name__ == "__main__":
    main()
