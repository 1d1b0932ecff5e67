import os
import socket
import tempfile
import time

import torch
import torch.multiprocessing as mp
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    TrainerCallback,
)

from dialogues import Dialogues
from scoring import compute_rouge


class Progress(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(0.15)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step} {logs}", flush=True)


def worker(local_rank, world, port, outdir):
    os.environ.update(
        RANK=str(local_rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1,
    )
    args = Seq2SeqTrainingArguments(
        output_dir=outdir,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        max_steps=50000,
        learning_rate=1e-3,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=200,
        save_strategy="no",
        predict_with_generate=True,
        generation_max_length=10,
        ddp_find_unused_parameters=False,
        ddp_timeout=3600,
    )
    trainer = Seq2SeqTrainer(
        model=T5ForConditionalGeneration(config),
        args=args,
        train_dataset=Dialogues(4000, 1),
        eval_dataset=Dialogues(96, 2),
        compute_metrics=compute_rouge,
        callbacks=[Progress()],
    )
    trainer.train()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(2, port, tempfile.mkdtemp(prefix="sum_")), nprocs=2)
