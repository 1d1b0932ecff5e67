import os


class MilestoneCheckpoint:
    """Keeps a named copy every few epochs besides last.ckpt."""

    def __init__(self, every_n_epochs=6):
        self.every_n_epochs = every_n_epochs

    def on_validation_end(self, trainer, metric):
        epoch = trainer.current_epoch + 1
        if epoch % self.every_n_epochs:
            return
        if trainer.is_global_zero:
            path = os.path.join(trainer.ckpt_dir, f"epoch={epoch:03d}-val={metric:.3f}.ckpt")
            trainer.save_checkpoint(path)
            print(f"milestone saved to {path}", flush=True)
