import tempfile
import time

from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Trainer, TrainingArguments

from sft_data import VOCAB, collate, eval_set, train_stream
from telemetry import Telemetry


class SFTTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        time.sleep(0.1 if model.training else 0.5)
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)


def main():
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="sft_"),
        max_steps=100000,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=2,
        dataloader_num_workers=2,
        dataloader_persistent_workers=True,
        accelerator_config={"dispatch_batches": False},
        eval_strategy="steps",
        eval_steps=60,
        save_strategy="steps",
        save_steps=60,
        save_total_limit=1,
        logging_steps=10,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        ignore_data_skip=True,
        ddp_find_unused_parameters=False,
    )
    config = GPTNeoXConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                           intermediate_size=64, max_position_embeddings=32, bos_token_id=1, eos_token_id=2)
    trainer = SFTTrainer(model=GPTNeoXForCausalLM(config), args=args, train_dataset=train_stream(),
                         eval_dataset=eval_set(), data_collator=collate, callbacks=[Telemetry()])
    trainer.train()


if __name__ == "__main__":
    main()
