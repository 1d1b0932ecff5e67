import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from archive_callback import ArchiveCallback

torch.set_num_threads(1)


class Blocks(Dataset):
    def __init__(self, n, length=32, vocab=256):
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(0, vocab, (n, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        time.sleep(0.02)
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output_dir", required=True)
    p.add_argument("--archive_dir", required=True)
    a = p.parse_args()
    args = TrainingArguments(
        output_dir=a.output_dir, use_cpu=True, ddp_backend="gloo", per_device_train_batch_size=4, max_steps=20000,
        logging_steps=5, save_steps=20, save_total_limit=2, report_to=[], disable_tqdm=True, ddp_find_unused_parameters=False,
    )
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=2))
    trainer = Trainer(model=model, args=args, train_dataset=Blocks(4000), callbacks=[ArchiveCallback(a.archive_dir)])
    trainer.train()


if __name__ == "__main__":
    main()
