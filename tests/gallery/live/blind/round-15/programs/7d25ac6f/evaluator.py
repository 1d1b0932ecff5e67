import numpy as np
import torch
import torch.nn.functional as F


class RetrievalEvaluator:
    """MRR@10 of queries against one positive and a sample of corpus passages."""

    def __init__(self, queries, passages, corpus_sample=500, batch_size=64, name="dev"):
        self.queries = queries
        self.passages = passages
        self.corpus_sample = corpus_sample
        self.batch_size = batch_size
        self.primary_metric = f"eval_{name}_mrr@10"
        self.rng = np.random.default_rng(0)

    @torch.no_grad()
    def __call__(self, model):
        picked = self.rng.choice(len(self.queries), self.corpus_sample, replace=False)
        q = torch.cat([model.encode(x) for x in self.queries[picked].split(self.batch_size)])
        p = torch.cat([model.encode(x) for x in self.passages[picked].split(self.batch_size)])
        scores = F.normalize(q, dim=-1) @ F.normalize(p, dim=-1).T
        rank = (scores > scores.diagonal()[:, None]).sum(1) + 1
        mrr = torch.where(rank <= 10, 1.0 / rank, torch.zeros(())).mean().item()
        return {self.primary_metric: mrr}
