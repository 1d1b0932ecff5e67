import time

import torch


class BeamTranslator:
    """Decodes the dev set sentence by sentence (beam search, no batching)."""

    def __init__(self, model, beam=6, max_len=18, vocab=300):
        self.model, self.beam, self.max_len, self.vocab = model, beam, max_len, vocab

    @torch.no_grad()
    def __call__(self, src):
        memory = self.model.encode(src[None])
        beams = [([1], 0.0)]
        for _ in range(self.max_len):
            cand = []
            for toks, score in beams:
                logp = self.model.step(memory, torch.tensor([toks])).log_softmax(-1)[0]
                top = logp.topk(self.beam)
                cand += [(toks + [i.item()], score + s.item()) for s, i in zip(top.values, top.indices)]
            beams = sorted(cand, key=lambda c: -c[1])[:self.beam]
        return beams[0][0]


def overlap(hyp, ref):
    h, r = set(hyp), set(ref.tolist())
    return len(h & r) / max(1, len(r))


def corpus_score(model, devset, budget=14.0):
    model.eval()
    tr = BeamTranslator(model)
    scores, t0 = [], time.time()
    for src, ref in devset:
        scores.append(overlap(tr(src), ref))
        if time.time() - t0 > budget:
            break
    model.train()
    return sum(scores) / len(scores), len(scores)
