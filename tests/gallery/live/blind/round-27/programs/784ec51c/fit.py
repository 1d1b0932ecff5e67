import lightning as L
import torch.distributed as dist
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from corpora import train_set, val_loader
from module import MixtureClassifier


class RunReport(Callback):
    """Collects the norm of the weights of every process after a validation pass."""

    def on_validation_end(self, trainer, pl_module):
        norm = sum(p.detach().norm().item() for p in pl_module.parameters())
        norms = [None] * trainer.world_size
        dist.all_gather_object(norms, norm)
        if trainer.is_global_zero:
            shown = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
            print(f"validation at step {trainer.global_step}: {shown} norms {norms}", flush=True)


class Data(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(train_set(), batch_size=4, shuffle=True)

    def val_dataloader(self):
        return val_loader(self.trainer.global_rank, self.trainer.world_size)


def main():
    L.seed_everything(17)
    trainer = L.Trainer(
        accelerator="cpu", devices=3, strategy=DDPStrategy(process_group_backend="gloo"),
        max_epochs=50, val_check_interval=60, num_sanity_val_steps=0,
        enable_checkpointing=False, logger=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[RunReport()],
    )
    trainer.fit(MixtureClassifier(), datamodule=Data())


if __name__ == "__main__":
    main()
