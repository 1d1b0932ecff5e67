import tempfile
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from intents import Intents, collate
from metrics_pump import MetricsPump, Plateau


class TimedBert(BertForSequenceClassification):
    def forward(self, input_ids=None, attention_mask=None, labels=None):
        time.sleep(0.05 + 0.004 * input_ids.shape[1])
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(17)
    torch.set_num_threads(1)
    config = BertConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=64, num_labels=5)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), use_cpu=True, ddp_backend="gloo", ddp_timeout=1800,
        ddp_find_unused_parameters=False, per_device_train_batch_size=2, per_device_eval_batch_size=2,
        gradient_accumulation_steps=3, max_steps=100000, learning_rate=1e-3, lr_scheduler_type="constant",
        logging_steps=10, eval_strategy="steps", eval_steps=50, save_strategy="no", report_to=[],
        disable_tqdm=True, dataloader_drop_last=True,
    )
    trainer = Trainer(model=TimedBert(config), args=args, data_collator=collate, train_dataset=Intents(3000, 1),
                      eval_dataset=Intents(240, 2), compute_metrics=accuracy, callbacks=[MetricsPump(), Plateau()])
    trainer.train()


if __name__ == "__main__":
    main()
