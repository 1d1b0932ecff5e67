import argparse

import torch
from torch.utils.data import ConcatDataset
from transformers import BertConfig, BertForTokenClassification, EarlyStoppingCallback, TrainingArguments

from corpus import VOCAB, TaggedSentences, collate
from span_trainer import SpanTrainer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output_dir", default="out")
    p.add_argument("--eval_steps", type=int, default=15)
    a = p.parse_args()
    torch.set_num_threads(1)

    train = ConcatDataset([TaggedSentences(8000, "news"), TaggedSentences(4000, "reviews")])
    dev = ConcatDataset([TaggedSentences(48, s, seed=7) for s in ("news", "reviews", "forum")])

    config = BertConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=128, max_position_embeddings=64, num_labels=6)
    args = TrainingArguments(
        output_dir=a.output_dir,
        use_cpu=True,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=20,
        learning_rate=1e-3,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=a.eval_steps,
        save_strategy="steps",
        save_steps=a.eval_steps,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="loss",
        greater_is_better=False,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
    )
    trainer = SpanTrainer(
        model=BertForTokenClassification(config),
        args=args,
        data_collator=collate,
        train_dataset=train,
        eval_dataset=dev,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=4)],
    )
    result = trainer.train()
    trainer.accelerator.wait_for_everyone()
    trainer.save_model()
    print(result.metrics, flush=True)


if __name__ == "__main__":
    main()
