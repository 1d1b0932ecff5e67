import random


class PowerTasks:
    """Synthetic arithmetic prompts with growing depth, and sampled completions."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def problem(self, level):
        a, b, c = self.rng.randint(2, 9), self.rng.randint(2, 9), self.rng.randint(2, 4)
        if level == 1:
            return f"{a}^{b} + {c}", a ** b + c
        return f"{a}^{b}^{c}", a ** b ** c

    def completions(self, expr, n):
        out = []
        for _ in range(n):
            answer = expr
            draw = self.rng.random()
            if draw < 0.3:
                answer = expr.replace(expr[0], str(self.rng.randint(2, 9)), 1)
            elif draw < 0.32 and "^" in expr[2:]:
                answer = "^".join([expr[0], expr[2], expr[2]])
            out.append(f"We rewrite the power step by step. The result is \\boxed{{{answer}}}.")
        return out
