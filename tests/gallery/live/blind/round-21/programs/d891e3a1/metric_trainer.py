"""Trainer that keeps token level metrics next to the loss."""
import time
from collections import defaultdict

import torch
from torch.utils.data import SequentialSampler
from transformers import Trainer

from chat_data import TOOL_TOKEN


class MetricTrainer(Trainer):
    def __init__(self, *args, step_cost=0.2, **kwargs):
        super().__init__(*args, **kwargs)
        self._step_cost = step_cost
        self._metrics = defaultdict(list)

    def _get_train_sampler(self, train_dataset=None):
        # curriculum order, prepared offline
        return SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss
        time.sleep(self._step_cost)
        with torch.no_grad():
            self._update_metrics(outputs.logits, inputs)
        return (loss, outputs) if return_outputs else loss

    def _update_metrics(self, logits, inputs):
        pred = logits[:, :-1].argmax(-1)
        target = inputs["labels"][:, 1:]
        hit = (pred == target).float()
        self._metrics["token_accuracy"].append(hit.mean())
        probs = logits.log_softmax(-1)
        self._metrics["entropy"].append(-(probs.exp() * probs).sum(-1).mean())
        tool_rows = (inputs["input_ids"] == TOOL_TOKEN).any(-1)
        if tool_rows.any():
            self._metrics["tool_call_accuracy"].append(hit[tool_rows].mean())

    def log(self, logs, start_time=None):
        for name in sorted(self._metrics):
            values = self._metrics[name]
            local = torch.stack(values).mean()
            logs[name] = round(self.accelerator.gather(local).mean().item(), 4)
        self._metrics.clear()
        super().log(logs, start_time)
