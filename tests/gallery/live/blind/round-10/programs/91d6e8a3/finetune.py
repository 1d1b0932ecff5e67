import argparse
import logging
import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from textdata import Lines, collate

logger = logging.getLogger(__name__)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--run", default="gpt-small")
    p.add_argument("--max-steps", type=int, default=300)
    cli = p.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{os.environ['RANK']} %(message)s")
    torch.set_num_threads(1)

    output_dir = os.path.join(os.environ["LOCAL_SCRATCH"], "runs", cli.run)
    os.makedirs(output_dir, exist_ok=True)
    args = TrainingArguments(
        output_dir=output_dir,
        max_steps=cli.max_steps,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        learning_rate=1e-3,
        logging_steps=20,
        save_strategy="steps",
        save_steps=60,
        eval_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        ignore_data_skip=True,
        dataloader_num_workers=0,
        seed=11,
    )
    config = GPT2Config(vocab_size=128, n_positions=128, n_embd=64, n_layer=2, n_head=4)
    model = GPT2LMHeadModel(config)
    trainer = Trainer(model=model, args=args, train_dataset=Lines(2400, 5), eval_dataset=Lines(240, 6),
                      data_collator=collate)

    checkpoint = get_last_checkpoint(output_dir)
    if checkpoint is not None:
        logger.info("resuming from %s", checkpoint)
    result = trainer.train(resume_from_checkpoint=checkpoint)
    logger.info("train done: %s", result.metrics)

    metrics = trainer.evaluate()
    logger.info("eval: %s", metrics)
    trainer.save_model(os.path.join(output_dir, "final"))


if __name__ == "__main__":
    main()
