import tempfile
import time

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from verifier import RewardManager

VOCAB = 128


class PromptCompletions(Dataset):
    """Recorded completions with the expected last digit of the answer."""

    def __init__(self, rows=9000, length=14):
        g = torch.Generator().manual_seed(21)
        self.ids = torch.randint(1, VOCAB, (rows, length), generator=g)
        self.ids = torch.where(self.ids % 37 == 0, self.ids + 1, self.ids)
        self.ids[364, 5] = 74
        self.target = torch.randint(0, 10, (rows,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "target": self.target[i]}


class PolicyTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.reward_manager = RewardManager()
        self.baseline = 0.1

    def _get_train_sampler(self, *args, **kwargs):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        ids, target = inputs["input_ids"], inputs["target"]
        rewards = torch.tensor(self.reward_manager.score(ids.tolist(), target.tolist()))
        advantage = (rewards - self.baseline).unsqueeze(-1)
        self.baseline = 0.95 * self.baseline + 0.05 * rewards.mean().item()
        outputs = model(input_ids=ids)
        logp = F.log_softmax(outputs.logits[:, :-1], dim=-1)
        picked = logp.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
        loss = -(picked * advantage).mean()
        time.sleep(0.1)
        return (loss, outputs) if return_outputs else loss


class Progress(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.global_step % 5 == 0:
            print(f"update {state.global_step}", flush=True)


def main():
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="rl_"),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=50,
        learning_rate=1e-4,
        save_strategy="no",
        logging_steps=1000,
        report_to=[],
        use_cpu=True,
        ddp_timeout=3600,
        ddp_find_unused_parameters=False,
        remove_unused_columns=False,
        disable_tqdm=True,
    )
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    trainer = PolicyTrainer(model=model, args=args, train_dataset=PromptCompletions(), callbacks=[Progress()])
    trainer.train()


if __name__ == "__main__":
    main()
