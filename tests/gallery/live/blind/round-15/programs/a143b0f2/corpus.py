"""Document shards, one per data-parallel rank."""
import torch

VOCAB = 512


class DocumentShard(torch.utils.data.IterableDataset):
    """Streams fixed-size chunks cut from the documents of one shard.

    Most documents are longer than the context and are cut to it.  The tail of
    a shard holds the short ones; those are padded up to the context.
    """

    def __init__(self, shard, num_shards, context, docs_per_pass=4096, seed=17):
        self.shard = shard
        self.num_shards = num_shards
        self.context = context
        self.docs_per_pass = docs_per_pass
        self.seed = seed

    def _doc_length(self, gen, idx):
        length = int(torch.randint(self.context + 1, 4 * self.context, (1,), generator=gen))
        if self.shard == 1 and idx > 640 and idx % 5 == 0:
            length = int(torch.randint(self.context // 2, self.context, (1,), generator=gen))
        return length

    def __iter__(self):
        gen = torch.Generator().manual_seed(self.seed + self.shard)
        while True:
            for idx in range(self.docs_per_pass):
                n = self._doc_length(gen, idx)
                start = int(torch.randint(0, VOCAB, (1,), generator=gen))
                toks = (start + 7 * torch.arange(min(n, self.context + 1))) % VOCAB
                yield toks


def collate(docs, context):
    longest = context + 1
    ids = torch.zeros(len(docs), longest, dtype=torch.long)
    keep = torch.zeros(len(docs), longest, dtype=torch.bool)
    for i, d in enumerate(docs):
        ids[i, : len(d)] = d
        keep[i, : len(d)] = True
    mask = None if bool(keep.all()) else keep[:, :-1]
    return {"input_ids": ids[:, :-1].contiguous(), "labels": ids[:, 1:].contiguous(), "attention_mask": mask}
