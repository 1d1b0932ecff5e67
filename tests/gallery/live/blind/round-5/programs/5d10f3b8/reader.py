import torch, time

CAT = {c: i for i, c in enumerate("abcdefgh")}


def row_source(rank, batch):
    g = torch.Generator().manual_seed(rank)
    n = 0
    while True:
        n += 1
        cats = ["abcdefgh"[k] for k in torch.randint(0, 8, (batch,), generator=g).tolist()]
        if rank == 2 and n == 90:
            cats[5] = "\ufffd"
        dense = torch.randn(batch, 13, generator=g)
        yield dense, torch.tensor([CAT[c] for c in cats]), torch.rand(batch, generator=g).round()
        time.sleep(0.02)
