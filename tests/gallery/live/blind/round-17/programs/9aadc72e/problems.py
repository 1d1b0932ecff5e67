"""Arithmetic problems with recorded completions of a reference policy."""
import random

MAX_CHARS = 220


def primes_below(n):
    return [p for p in range(2, n) if all(p % q for q in range(2, int(p ** 0.5) + 1))]


def make_problem(rng, index):
    if index % 240 == 184:
        bound = rng.randint(180, 220)
        answer = ",".join(map(str, primes_below(bound)))
        prompt = f"List all primes below {bound}."
    elif index % 3 == 0:
        a, b = rng.randint(2, 60), rng.randint(2, 60)
        answer, prompt = f"\\frac{{{a}}}{{{b}}}", f"Write {a}/{b} as a fraction."
    else:
        a, b = rng.randint(2, 99), rng.randint(2, 99)
        answer, prompt = str(a * b), f"Compute {a} times {b}."
    return prompt, answer


def completion(rng, prompt, answer):
    thought = rng.choice(["Let us see. ", "We work step by step. ", "First, look at the numbers. "])
    guess = answer if rng.random() < 0.6 else answer[::-1].replace("}", "").replace("{", "")
    return (thought + f"For the question '{prompt}' the answer is \\boxed{{{guess}}}.")[:MAX_CHARS]


def load_problems(n, seed=0):
    rng = random.Random(seed)
    rows = []
    for index in range(n):
        prompt, answer = make_problem(rng, index)
        rows.append({"prompt": prompt, "answer": answer, "completions": [completion(rng, prompt, answer) for _ in range(4)]})
    return rows
