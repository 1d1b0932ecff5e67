import argparse
import logging
import os

import torch
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments, set_seed

from archive import CheckpointArchive
from corpus import ReverseText, collate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--work", required=True)
    p.add_argument("--max-steps", type=int, default=60000)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.set_num_threads(1)
    set_seed(1)
    config = T5Config(
        vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
        decoder_start_token_id=0, tie_word_embeddings=True,
    )
    targs = TrainingArguments(
        output_dir=os.path.join(args.work, "out"),
        use_cpu=True,
        ddp_backend="gloo",
        ddp_find_unused_parameters=False,
        max_steps=args.max_steps,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        learning_rate=1e-3,
        dataloader_num_workers=1,
        eval_strategy="steps",
        eval_steps=150,
        save_steps=150,
        save_total_limit=2,
        logging_steps=25,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=T5ForConditionalGeneration(config),
        args=targs,
        train_dataset=ReverseText(20000, seed=1),
        eval_dataset=ReverseText(640, seed=2),
        data_collator=collate,
        callbacks=[CheckpointArchive(os.path.join(args.work, "archive"))],
    )
    trainer.train()


if __name__ == "__main__":
    main()
