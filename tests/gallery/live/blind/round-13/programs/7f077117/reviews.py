import random

from datasets import Dataset, DatasetDict
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

GOOD = [f"good{i}" for i in range(80)]
BAD = [f"bad{i}" for i in range(80)]
PLAIN = [f"w{i}" for i in range(600)]


def reviews(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        label = rng.randrange(2)
        words = [rng.choice((GOOD if (rng.random() < 0.75) == bool(label) else BAD) if rng.random() < 0.2 else PLAIN)
                 for _ in range(rng.randint(10, 60))]
        yield {"text": " ".join(words), "label": label}


def load():
    return DatasetDict(train=Dataset.from_list(list(reviews(6000, 1))), dev=Dataset.from_list(list(reviews(480, 2))))


def tokenizer():
    vocab = {t: i for i, t in enumerate(["[PAD]", "[UNK]", *GOOD, *BAD, *PLAIN])}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]")
