import numpy as np

N_DOCS = 6000
WARM_MAX_LEN = 4000


def doc_lengths(seed=76):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.lognormal(6.6, 0.66, N_DOCS), 8000).astype(int)


def warm_up(store, lengths):
    rows = 0
    for doc_id, n in enumerate(lengths):
        if n < WARM_MAX_LEN:
            vec = np.random.default_rng(doc_id).standard_normal(96, dtype=np.float32)
            store.con.execute("INSERT INTO feat VALUES (?, ?)", (doc_id, vec.tobytes()))
            rows += 1
    store.flush()
    return rows


def shard(rank, world):
    return list(range(rank, N_DOCS, world))
