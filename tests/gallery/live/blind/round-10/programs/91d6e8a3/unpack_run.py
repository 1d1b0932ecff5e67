"""Restore the archived checkpoint of the previous allocation onto this node's scratch disk."""
import json
import os
import sys

import numpy as np
from safetensors.numpy import save_file

out = os.path.join(sys.argv[1], "checkpoint-60")
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(3)
dim, layers, vocab, ctx = 64, 2, 128, 128


def w(*shape):
    return (rng.standard_normal(shape) * 0.02).astype(np.float32)


state = {"transformer.wte.weight": w(vocab, dim), "transformer.wpe.weight": w(ctx, dim),
         "transformer.ln_f.weight": np.ones(dim, np.float32), "transformer.ln_f.bias": np.zeros(dim, np.float32)}
for i in range(layers):
    h = f"transformer.h.{i}."
    for ln in ("ln_1", "ln_2"):
        state[h + ln + ".weight"] = np.ones(dim, np.float32)
        state[h + ln + ".bias"] = np.zeros(dim, np.float32)
    for name, a, b in (("attn.c_attn", dim, 3 * dim), ("attn.c_proj", dim, dim),
                       ("mlp.c_fc", dim, 4 * dim), ("mlp.c_proj", 4 * dim, dim)):
        state[h + name + ".weight"] = w(a, b)
        state[h + name + ".bias"] = np.zeros(b, np.float32)
save_file(state, os.path.join(out, "model.safetensors"), metadata={"format": "pt"})
json.dump({"epoch": 0.6, "global_step": 60, "max_steps": 300, "num_train_epochs": 3, "logging_steps": 20,
           "eval_steps": 500, "save_steps": 60, "train_batch_size": 8, "total_flos": 0.0, "log_history": [],
           "best_metric": None, "best_model_checkpoint": None, "num_input_tokens_seen": 0, "is_hyper_param_search": False,
           "is_local_process_zero": True, "is_world_process_zero": True, "trial_name": None, "trial_params": None,
           "stateful_callbacks": {"TrainerControl": {"args": {
               "should_training_stop": False, "should_epoch_stop": False, "should_save": True, "should_evaluate": False,
               "should_log": False}, "attributes": {}}}}, open(os.path.join(out, "trainer_state.json"), "w"))
