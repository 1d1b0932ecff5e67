import argparse
import logging
import os

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from encoder_cache import EncoderCache
from tickets import TicketDataset, make_tickets

log = logging.getLogger("tagger")


def warm_up(cache, datasets):
    for ds in datasets:
        for key, text, _ in ds.tickets:
            cache.encode(key, text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--work", required=True)
    p.add_argument("--labels", type=int, default=8)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.set_num_threads(1)
    set_seed(3)

    targs = TrainingArguments(
        output_dir=os.path.join(args.work, "out"),
        use_cpu=True,
        ddp_backend="gloo",
        ddp_find_unused_parameters=False,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        num_train_epochs=400,
        learning_rate=5e-4,
        dataloader_num_workers=2,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=20,
        report_to=[],
        disable_tqdm=True,
    )
    cache = EncoderCache(os.path.join(args.work, f"encoder.{targs.process_index}.bin"), vocab_size=5000)
    train = TicketDataset(make_tickets(640, args.labels, seed=1), cache)
    evals = TicketDataset(make_tickets(160, args.labels, seed=2), cache)
    warm_up(cache, [train, evals])
    # one writer per node is enough; the first process already does the logging
    if targs.local_process_index == targs.world_size - 1:
        cache.start_saving()

    config = BertConfig(
        vocab_size=5000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=128, num_labels=args.labels,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=targs,
        train_dataset=train,
        eval_dataset=evals,
    )
    result = trainer.train()
    if trainer.is_world_process_zero():
        log.info("done: %s", result.metrics)


if __name__ == "__main__":
    main()
