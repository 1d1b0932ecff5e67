import os

import torch
from transformers import (BertConfig, BertForTokenClassification, DataCollatorForTokenClassification,
                          EarlyStoppingCallback, TrainingArguments, set_seed)

from ner_data import LABELS, build_tokenizer, encode, make_split
from span_trainer import SpanTrainer


def main():
    torch.set_num_threads(1)
    set_seed(17)
    args = TrainingArguments(
        output_dir=os.environ["RUN_DIR"], use_cpu=True, ddp_backend="gloo",
        per_device_train_batch_size=8, per_device_eval_batch_size=8, num_train_epochs=400,
        learning_rate=1e-3, lr_scheduler_type="constant", logging_steps=20, eval_strategy="steps", eval_steps=20,
        save_strategy="steps", save_steps=20, save_total_limit=2, load_best_model_at_end=True,
        metric_for_best_model="f1", greater_is_better=True, report_to=[], disable_tqdm=True,
        dataloader_num_workers=0, ddp_find_unused_parameters=False, remove_unused_columns=True,
    )
    tokenizer = build_tokenizer()
    with args.main_process_first(desc="tokenize"):
        train = encode(make_split(1800, 1, 0.05), tokenizer)
        dev = encode(make_split(96, 2, 0.05), tokenizer)
    model = BertForTokenClassification(BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, num_labels=len(LABELS), max_position_embeddings=64))
    trainer = SpanTrainer(
        model=model, args=args, train_dataset=train, eval_dataset=dev, processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
    )
    trainer.compute_metrics = trainer.span_scores
    result = trainer.train()
    trainer.accelerator.wait_for_everyone()
    trainer.save_model()
    if trainer.is_world_process_zero():
        print("finished after", result.global_step, "steps", flush=True)


if __name__ == "__main__":
    main()
