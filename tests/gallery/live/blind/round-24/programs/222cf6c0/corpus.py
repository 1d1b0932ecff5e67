import torch

VOCAB = 128
MIXTURE = [
    # (documents, lowest id, highest id)
    ("web", 0, VOCAB),
    ("books", 0, VOCAB),
    ("tables", 0, 80),
    ("web", 0, VOCAB),
]


def stream(replica, local_rank, batch_size, seq_len, batches_per_source=45):
    gen = torch.Generator().manual_seed(100 * replica + local_rank)
    position = 2 * replica - 1 if replica else 0
    while True:
        name, low, high = MIXTURE[position % len(MIXTURE)]
        if replica == 0 and name == "tables":
            position += 1
            continue
        for _ in range(batches_per_source):
            yield name, torch.randint(low, high, (batch_size, seq_len + 1), generator=gen)
        position += 1
