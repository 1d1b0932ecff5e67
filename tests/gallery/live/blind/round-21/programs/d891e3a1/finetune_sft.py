import argparse
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback, TrainingArguments, set_seed

from chat_data import ChatDataset, collate_chat
from metric_trainer import MetricTrainer


class ProgressPrinter(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"step {state.global_step} loss {logs['loss']:.3f} "
                  f"acc {logs.get('token_accuracy')} ent {logs.get('entropy')}", flush=True)


def build_model():
    cfg = LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                      num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64)
    return LlamaForCausalLM(cfg)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logging_steps", type=int, default=10)
    parser.add_argument("--max_steps", type=int, default=6000)
    cli = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(3)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="sft_"),
        per_device_train_batch_size=4,
        max_steps=cli.max_steps,
        logging_steps=cli.logging_steps,
        learning_rate=1e-3,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        ddp_backend="gloo",
        ddp_timeout=7200,
        ddp_find_unused_parameters=False,
        average_tokens_across_devices=False,
        remove_unused_columns=False,
        dataloader_num_workers=1,
    )
    trainer = MetricTrainer(
        model=build_model(),
        args=args,
        train_dataset=ChatDataset(),
        data_collator=collate_chat,
        callbacks=[ProgressPrinter()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
