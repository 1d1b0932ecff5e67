import os

from transformers import BertConfig, BertForMaskedLM, TrainingArguments

VOCAB = 1024


def build_model():
    return BertForMaskedLM(BertConfig(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                      intermediate_size=192, max_position_embeddings=80))


def training_args(run_dir, max_steps=200_000):
    return TrainingArguments(
        output_dir=os.path.join(run_dir, "out"), per_device_train_batch_size=8, max_steps=max_steps, learning_rate=5e-4,
        logging_steps=20, save_steps=1000, save_total_limit=2, report_to=[], use_cpu=True, disable_tqdm=True,
        ddp_find_unused_parameters=False, remove_unused_columns=False, seed=3,
    )
