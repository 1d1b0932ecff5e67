import random

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import Dataset

VERBS = ["book", "cancel", "move", "find", "rate", "play"]
THINGS = ["a table", "the flight", "my alarm", "a song", "the meeting", "a taxi"]
TAILS = ["for two", "tomorrow morning", "near the station", "please", "at nine", "as soon as possible"]


def sentences(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        label = rng.randrange(len(VERBS))
        out.append((f"{VERBS[label]} {rng.choice(THINGS)} {' '.join(rng.sample(TAILS, 3))}", label))
    return out


def build_tokenizer(texts):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.Lowercase()
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]"], show_progress=False))
    tok.enable_padding(length=24)
    tok.enable_truncation(24)
    return tok


class IntentSet(Dataset):
    def __init__(self, rows, tokenizer):
        self.rows, self.tokenizer = rows, tokenizer

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        enc = self.tokenizer.encode("[CLS] " + text)
        return {"input_ids": enc.ids, "attention_mask": enc.attention_mask, "labels": label}
