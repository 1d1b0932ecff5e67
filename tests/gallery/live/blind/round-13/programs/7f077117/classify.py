import os

import numpy as np
import torch
from datasets import load_from_disk
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding, EarlyStoppingCallback,
                          Trainer, TrainingArguments, set_seed)

import reviews


def accuracy(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


def main():
    torch.set_num_threads(1)
    set_seed(1)
    args = TrainingArguments(
        output_dir=os.path.join(os.environ["RUN_DIR"], "out"), use_cpu=True, ddp_backend="gloo",
        per_device_train_batch_size=16, per_device_eval_batch_size=32, num_train_epochs=1000,
        learning_rate=3e-4, logging_steps=25, eval_strategy="steps", eval_steps=100, save_strategy="steps",
        save_steps=100, save_total_limit=1, load_best_model_at_end=True, metric_for_best_model="accuracy",
        report_to=[], disable_tqdm=True, dataloader_num_workers=1, dataloader_persistent_workers=True,
        ddp_find_unused_parameters=False,
    )
    tok = reviews.tokenizer()
    store = os.path.join(os.environ["RUN_DIR"], "tokenized")
    with args.main_process_first(desc="tokenize"):
        if not os.path.isdir(store):
            reviews.load().map(lambda b: tok(b["text"], truncation=True, max_length=64), batched=True, num_proc=2,
                               remove_columns=["text"]).save_to_disk(store)
    data = load_from_disk(store)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(tok), hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192,
        max_position_embeddings=64, num_labels=2))
    trainer = Trainer(model=model, args=args, train_dataset=data["train"], eval_dataset=data["dev"],
                      data_collator=DataCollatorWithPadding(tok), processing_class=tok, compute_metrics=accuracy,
                      callbacks=[EarlyStoppingCallback(early_stopping_patience=500)])
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
