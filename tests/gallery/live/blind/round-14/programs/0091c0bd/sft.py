import argparse
import random

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from sampler import LengthGroupedBatches


class Conversations(Dataset):
    def __init__(self, n=6000, vocab=500, seed=4):
        rng = random.Random(seed)
        self.lengths = [int(min(256, max(12, rng.lognormvariate(3.7, 0.9)))) for _ in range(n)]
        self.vocab = vocab

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        return torch.randint(1, self.vocab, (self.lengths[i],), generator=gen)


def collate(rows):
    width = max(len(r) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, : len(r)] = r
        mask[i, : len(r)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


class SFTTrainer(Trainer):
    def get_train_dataloader(self):
        sampler = LengthGroupedBatches(
            self.train_dataset.lengths, self.args.per_device_train_batch_size,
            self.args.process_index, self.args.world_size, self.args.seed,
        )
        return DataLoader(self.train_dataset, batch_sampler=sampler, collate_fn=collate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=500, n_positions=256, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    )
    targs = TrainingArguments(
        args.output_dir, use_cpu=True, per_device_train_batch_size=6, max_steps=200000, logging_steps=25,
        save_strategy="no", report_to=[], disable_tqdm=True, learning_rate=2e-4, ddp_find_unused_parameters=False,
    )
    SFTTrainer(model, targs, train_dataset=Conversations(), data_collator=collate).train()


if __name__ == "__main__":
    main()
