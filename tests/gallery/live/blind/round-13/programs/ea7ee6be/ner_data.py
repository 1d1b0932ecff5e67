import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
NAMES = [f"name{i}" for i in range(60)]
PLACES = [f"place{i}" for i in range(60)]
FILLER = [f"w{i}" for i in range(200)]


def make_split(n, seed, noise):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        words, tags = [], []
        for _ in range(rng.randint(4, 9)):
            kind = rng.random()
            pool, tag = (NAMES, "PER") if kind < 0.25 else (PLACES, "LOC") if kind < 0.5 else (FILLER, None)
            for k in range(rng.randint(1, 2) if tag else 1):
                words.append(rng.choice(pool))
                tags.append(0 if tag is None else LABELS.index(("B-" if k == 0 else "I-") + tag))
            if tag and rng.random() < noise:
                tags[-1] = rng.randrange(len(LABELS))
        rows.append({"words": words, "tags": tags})
    return rows


def build_tokenizer():
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]", *FILLER, *NAMES, *PLACES])}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]")


def encode(rows, tokenizer):
    def align(batch):
        enc = tokenizer(batch["words"], is_split_into_words=True)
        enc["labels"] = batch["tags"]
        return enc

    return Dataset.from_list(rows).map(align, batched=True, remove_columns=["words", "tags"])
