import numpy as np
import torch
from torch.utils.data import Dataset

WORDS = (
    "account refund invoice login password reset device crash update latency network router billing plan "
    "cancel upgrade shipping delay parcel address phone number support agent reply urgent thanks please error"
).split()


def make_tickets(n, labels, seed):
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        y = int(rng.integers(labels))
        words = rng.choice(WORDS, size=int(rng.integers(1200, 2000)))
        out.append((f"T{seed}-{i:06d}", " ".join(words) + f" topic{y}", y))
    return out


class TicketDataset(Dataset):
    def __init__(self, tickets, cache, max_len=96):
        self.tickets = tickets
        self.cache = cache
        self.max_len = max_len

    def __len__(self):
        return len(self.tickets)

    def __getitem__(self, i):
        key, text, y = self.tickets[i]
        ids = self.cache.encode(key, text)
        ids = np.concatenate([ids[: self.max_len // 2], ids[-self.max_len // 2 :]])
        return {"input_ids": torch.from_numpy(ids.astype(np.int64)), "labels": y}
