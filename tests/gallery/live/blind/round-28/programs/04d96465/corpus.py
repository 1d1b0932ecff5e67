import random
import time

from datasets import Dataset, load_from_disk

WORDS = [f"w{i:03d}" for i in range(400)]


def raw_stage(stage, n=900):
    rng = random.Random(100 + stage)
    low, high = 6 + stage % 3, 16 + 2 * (stage % 5)
    return Dataset.from_dict({"text": [" ".join(rng.choices(WORDS, k=rng.randint(low, high))) for _ in range(n)]})


def encode(batch, max_len):
    time.sleep(0.4)
    ids = []
    for line in batch["text"]:
        row = [1] + [int(w[1:]) + 2 for w in line.split()][: max_len - 1]
        ids.append(row + [0] * (max_len - len(row)))
    return {"input_ids": ids}


def prepare_stage(state, root, stage, max_len=24):
    """Tokenised once by the main process, read by everyone afterwards."""
    path = f"{root}/stage-{stage:03d}"
    with state.main_process_first():
        if state.is_main_process:
            ds = raw_stage(stage).map(encode, batched=True, batch_size=100, fn_kwargs={"max_len": max_len},
                                      remove_columns=["text"], load_from_cache_file=False)
            ds.save_to_disk(path)
        ds = load_from_disk(path)
    return ds.with_format("torch")
