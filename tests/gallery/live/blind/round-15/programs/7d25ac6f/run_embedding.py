import argparse

import torch
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from encoder import BiEncoder, PairDataset
from evaluator import RetrievalEvaluator


class EmbeddingTrainer(Trainer):
    def __init__(self, *args, evaluator=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.evaluator = evaluator

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        self.model.eval()
        if self.is_world_process_zero():
            metrics = self.evaluator(self.accelerator.unwrap_model(self.model))
        else:
            metrics = {self.evaluator.primary_metric: 0.0}
        self.accelerator.wait_for_everyone()
        self.model.train()
        metrics["epoch"] = self.state.epoch
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


class PrintCallback(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step} " + " ".join(
                f"{k}={v:.4g}" for k, v in logs.items() if isinstance(v, (int, float))), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", required=True)
    cli = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(12)

    train, dev = PairDataset(6000, seed=1), PairDataset(600, seed=2)
    args = TrainingArguments(
        output_dir=cli.output_dir, use_cpu=True, per_device_train_batch_size=32, max_steps=20000,
        learning_rate=1e-4, eval_strategy="steps", eval_steps=15, save_strategy="no", logging_steps=15,
        metric_for_best_model="dev_mrr@10", greater_is_better=True, seed=12, report_to=[],
        disable_tqdm=True, ddp_find_unused_parameters=False, remove_unused_columns=False,
    )
    trainer = EmbeddingTrainer(
        model=BiEncoder(), args=args, train_dataset=train, eval_dataset=dev,
        evaluator=RetrievalEvaluator(dev.query, dev.passage),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=3), PrintCallback()],
    )
    trainer.train()
    trainer.accelerator.wait_for_everyone()
    final = trainer.evaluate()
    if trainer.is_world_process_zero():
        print("final", final, flush=True)


if __name__ == "__main__":
    main()
