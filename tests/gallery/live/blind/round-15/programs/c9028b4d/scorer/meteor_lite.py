"""Line protocol in the manner of `meteor - - -stdio`.

SCORE ||| reference 1 ||| reference 2 ||| hypothesis   -> one line of statistics
EVAL ||| stats ||| stats ...                           -> one line per statistics, then the total
"""
import sys


def stats(refs, hyp):
    best = None
    hyp_tokens = hyp.split()
    for ref in refs:
        ref_tokens = ref.split()
        pool = list(ref_tokens)
        matches, chunks, last = 0, 0, -2
        for tok in hyp_tokens:
            if tok in pool:
                pool.remove(tok)
                matches += 1
                pos = ref_tokens.index(tok)
                if pos != last + 1:
                    chunks += 1
                last = pos
        cand = (len(hyp_tokens), len(ref_tokens), matches, chunks)
        if best is None or cand[2] > best[2]:
            best = cand
    return best


def meteor(n_hyp, n_ref, matches, chunks):
    if matches == 0:
        return 0.0
    p, r = matches / n_hyp, matches / n_ref
    f = p * r / (0.85 * p + 0.15 * r)
    return f * (1 - 0.6 * (chunks / matches) ** 0.2)


def main():
    for line in sys.stdin:
        fields = [f.strip() for f in line.rstrip("\n").split("|||")]
        if fields[0] == "SCORE":
            if len(fields) < 3:
                continue
            print(" ".join(str(v) for v in stats(fields[1:-1], fields[-1])), flush=True)
        elif fields[0] == "EVAL":
            total = [0, 0, 0, 0]
            for f in fields[1:]:
                values = [int(v) for v in f.split()]
                if len(values) != 4:
                    continue
                total = [a + b for a, b in zip(total, values)]
                print(meteor(*values), flush=True)
            print(meteor(*total), flush=True)


if __name__ == "__main__":
    main()
