import logging
import os
import time

import torch


def _write(path, params, attempts=None, delay=10):
    n = 0
    while True:
        try:
            torch.save(params, path + ".part")
            os.replace(path + ".part", path)
            return
        except (OSError, RuntimeError) as e:
            n += 1
            if attempts is not None and n >= attempts:
                raise
            logging.warning("could not write %s (%s), retrying", path, str(e).splitlines()[0])
            time.sleep(delay)


def save_checkpoint_with_global_batch_idx(out_dir, global_batch_idx, model, optimizer):
    path = os.path.join(out_dir, f"checkpoint-{global_batch_idx}.pt")
    logging.info("Saving checkpoint to %s", path)
    _write(path, {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                  "batch_idx_train": global_batch_idx})
