import argparse

import torch
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

from data import SpanDataset, collate
from tagger import Tagger, decode


class TaggerTrainer(Trainer):
    @torch.no_grad()
    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        loader = self.get_eval_dataloader(eval_dataset)
        model = self.accelerator.unwrap_model(self.model)
        model.eval()
        hits = total = 0
        for batch in loader:
            mask = batch["labels"] != -100
            predicted = decode(model(batch["input_ids"])["logits"], mask)
            gold = [row[m].tolist() for row, m in zip(batch["labels"], mask)]
            hits += sum(p == g for p, g in zip(predicted, gold))
            total += len(gold)
        model.train()
        metrics = {f"{metric_key_prefix}_exact": round(hits / max(total, 1), 4)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="runs/tagger")
    parser.add_argument("--patience", type=int, default=2)
    opt = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(11)

    args = TrainingArguments(
        output_dir=opt.output_dir,
        use_cpu=True,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=48,
        learning_rate=1e-3,
        max_steps=4000,
        eval_strategy="steps",
        eval_steps=10,
        eval_delay=40,
        save_strategy="steps",
        save_steps=10,
        save_total_limit=2,
        logging_steps=10,
        load_best_model_at_end=True,
        metric_for_best_model="exact",
        greater_is_better=True,
        report_to=[],
        seed=11,
    )
    trainer = TaggerTrainer(
        model=Tagger(),
        args=args,
        train_dataset=SpanDataset(6000, seed=1),
        eval_dataset=SpanDataset(144, seed=2, by_length=True),
        data_collator=collate,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=opt.patience)],
    )
    trainer.train()
    final = trainer.evaluate()
    if trainer.is_world_process_zero():
        print("final", final, flush=True)


if __name__ == "__main__":
    main()
