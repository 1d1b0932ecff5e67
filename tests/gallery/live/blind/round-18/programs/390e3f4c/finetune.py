import http.client
import json
import os

import numpy as np
import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

from corpus import build, vocabulary

torch.set_num_threads(1)
VOCAB = vocabulary()


def collate(rows):
    ids = [[1] + [VOCAB.get(w, 0) for w in r["text"].split()] for r in rows]
    width = max(map(len, ids))
    mask = torch.tensor([[1] * len(i) + [0] * (width - len(i)) for i in ids])
    return {"input_ids": torch.tensor([i + [0] * (width - len(i)) for i in ids]), "attention_mask": mask,
            "labels": torch.tensor([r["label"] for r in rows])}


def metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


class ClassWeights(TrainerCallback):
    def __init__(self, every=200):
        self.every = every
        self.weights = torch.ones(6)

    def fetch(self, rev):
        conn = http.client.HTTPConnection("127.0.0.1", int(os.environ["LABEL_PORT"]), timeout=30)
        try:
            conn.request("GET", f"/weights/{rev}")
            self.weights = torch.tensor(json.loads(conn.getresponse().read())["weights"])
        finally:
            conn.close()

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0:
            self.fetch(state.global_step // self.every)


class Report(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs:
            print(f"step {state.global_step} " + " ".join(f"{k}={v}" for k, v in logs.items() if k in ("loss", "eval_loss", "eval_accuracy")), flush=True)


class WeightedTrainer(Trainer):
    def __init__(self, *a, weights, **kw):
        super().__init__(*a, **kw)
        self.weights = weights

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        out = model(**inputs)
        loss = torch.nn.functional.cross_entropy(out.logits, labels, weight=self.weights.weights)
        return (loss, out) if return_outputs else loss


def main():
    set_seed(5)
    args = TrainingArguments(
        output_dir=os.path.join(os.environ["RUN_DIR"], "out"), per_device_train_batch_size=4, per_device_eval_batch_size=16,
        gradient_accumulation_steps=2, num_train_epochs=300, learning_rate=3e-4, logging_steps=25, eval_strategy="steps",
        eval_steps=150, save_steps=150, save_total_limit=2, load_best_model_at_end=True, metric_for_best_model="accuracy",
        dataloader_num_workers=1, report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False,
        ddp_find_unused_parameters=False, ddp_timeout=3600,
    )
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=len(VOCAB) + 2, dim=64, n_layers=2, n_heads=4, hidden_dim=192, max_position_embeddings=64, num_labels=6))
    weights = ClassWeights()
    trainer = WeightedTrainer(model=model, args=args, train_dataset=build(9000, 1), eval_dataset=build(1500, 2), data_collator=collate,
                              compute_metrics=metrics, callbacks=[weights, Report()], weights=weights)
    trainer.train()


if __name__ == "__main__":
    main()
