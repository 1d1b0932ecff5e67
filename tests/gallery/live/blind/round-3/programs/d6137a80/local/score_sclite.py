"""Aligns hypotheses with references; writes one block per utterance and the total."""
import sys


def align(ref, hyp):
    n, m = len(ref), len(hyp)
    d = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                d[i][j] = i + j
            else:
                d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (ref[i - 1] != hyp[j - 1]))
    return d[n][m]


def main(ref_path, hyp_path, out_path):
    refs = dict(l.rstrip("\n").split(" ", 1) for l in open(ref_path))
    hyps = dict(l.rstrip("\n").split(" ", 1) for l in open(hyp_path))
    errs = words = 0
    for utt, ref in refs.items():
        r, h = ref.split(), hyps.get(utt, "").split()
        e = align(r, h)
        errs += e
        words += len(r)
        print(f"id: ({utt})\nScores: (#E #W) {e} {len(r)}\nREF:  {ref}\nHYP:  {hyps.get(utt, '')}\n")
    with open(out_path, "w") as f:
        f.write(f"{100.0 * errs / max(words, 1):.2f}")
    print(f"SYSTEM SUMMARY  Err {100.0 * errs / max(words, 1):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
