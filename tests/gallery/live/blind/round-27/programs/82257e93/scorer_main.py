"""Line protocol scorer: one 'SCORE ||| reference ||| hypothesis' per line in, one score per line out."""
import sys


def align(reference, hypothesis):
    ref, hyp = reference.split(), hypothesis.split()
    matched = [w for w in hyp if w in ref]
    unknown = [w for w in hyp if w not in ref]
    for w in unknown:
        print(f"WARN aligner: no paraphrase entry for token '{w}' in segment '{hypothesis}'", file=sys.stderr)
    if not matched:
        return 0.0
    p, r = len(matched) / len(hyp), len(matched) / len(ref)
    return 10 * p * r / (r + 9 * p)


def main():
    for line in sys.stdin:
        op, reference, hypothesis = (part.strip() for part in line.split("|||"))
        if op == "SCORE":
            print(f"{align(reference, hypothesis):.6f}", flush=True)


if __name__ == "__main__":
    main()
