import argparse
import glob
import os

import torch
from datasets import load_dataset
from transformers import Trainer, TrainerCallback, set_seed
from transformers.trainer_utils import get_last_checkpoint

from common import VOCAB, build_model, training_args
from wordpiece import WordPiece

torch.set_num_threads(1)
SEQ = 64


class Collate:
    def __init__(self, wp, prob=0.15):
        self.wp, self.prob = wp, prob

    def __call__(self, rows):
        ids = torch.full((len(rows), SEQ), self.wp.pad)
        for i, row in enumerate(rows):
            ids[i, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
        attn = (ids != self.wp.pad).long()
        labels = ids.clone()
        pick = (torch.rand(ids.shape) < self.prob) & (ids > 3)
        labels[~pick] = -100
        ids[pick] = self.wp.mask
        return {"input_ids": ids, "attention_mask": attn, "labels": labels}


def train_stream(corpus, wp):
    files = sorted(glob.glob(os.path.join(corpus, "*.jsonl")))
    ds = load_dataset("json", data_files=files, split="train", streaming=True)
    return ds.map(lambda row: {"input_ids": wp.encode(row["text"], SEQ)}, remove_columns=["text"]).repeat(None)


class Report(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.global_step % 20 == 0:
            print(f"step {state.global_step}/{state.max_steps}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-dir", required=True)
    ap.add_argument("--resume", action="store_true")
    args = ap.parse_args()
    targs = training_args(args.run_dir)
    set_seed(targs.seed)
    wp = WordPiece(VOCAB)
    trainer = Trainer(model=build_model(), args=targs, train_dataset=train_stream(os.path.join(args.run_dir, "corpus"), wp),
                      data_collator=Collate(wp), callbacks=[Report()])
    last = get_last_checkpoint(targs.output_dir) if args.resume else None
    if targs.process_index == 0:
        print(f"resuming from {last}", flush=True)
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main()
