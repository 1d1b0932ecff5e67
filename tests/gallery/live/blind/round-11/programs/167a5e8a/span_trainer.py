import time

import torch
from torch.utils.data import DataLoader, Subset
from transformers import Trainer

from corpus import collate


def to_spans(tags):
    spans, start = [], 0
    for i in range(1, len(tags) + 1):
        if i == len(tags) or tags[i] != tags[start]:
            spans.append((start, i, tags[start]))
            start = i
    return spans


class SpanTrainer(Trainer):
    """Evaluates on decoded spans, which the stock evaluation loop cannot stack."""

    def _eval_shard(self, dataset):
        per_rank = len(dataset) // self.args.world_size
        first = self.args.process_index * per_rank
        return Subset(dataset, range(first, first + per_rank))

    @torch.no_grad()
    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        dataset = eval_dataset if eval_dataset is not None else self.eval_dataset
        loader = DataLoader(self._eval_shard(dataset), batch_size=self.args.per_device_eval_batch_size,
                            collate_fn=collate)
        model = self.accelerator.unwrap_model(self.model)
        model.eval()
        began = time.time()
        hit = predicted = gold = 0
        loss_sum, n_batches = 0.0, 0
        for batch in loader:
            out = model(**batch)
            loss_sum += out.loss.item()
            n_batches += 1
            guess = out.logits.argmax(-1)
            for row, labels, mask in zip(guess, batch["labels"], batch["attention_mask"]):
                n = int(mask.sum())
                a = set(to_spans(row[:n].tolist()))
                b = set(to_spans(labels[:n].tolist()))
                hit += len(a & b)
                predicted += len(a)
                gold += len(b)
        metrics = {
            f"{metric_key_prefix}_loss": loss_sum / max(1, n_batches),
            f"{metric_key_prefix}_span_f1": 2 * hit / max(1, predicted + gold),
            f"{metric_key_prefix}_runtime": round(time.time() - began, 3),
        }
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        model.train()
        return metrics
