"""Rule-based reward: exact comparison of the boxed expression with the reference."""
import ast
import operator
import re
from concurrent.futures import ThreadPoolExecutor, TimeoutError

OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}
BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def evaluate(node):
    if isinstance(node, ast.Expression):
        return evaluate(node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPS:
        return OPS[type(node.op)](evaluate(node.left), evaluate(node.right))
    raise ValueError(f"unsupported expression: {ast.dump(node)}")


def parse_answer(text):
    match = BOXED.search(text)
    if match is None:
        return None
    return evaluate(ast.parse(match.group(1).replace("^", "**"), mode="eval"))


class MathVerifier:
    def __init__(self, timeout=5.0):
        self.timeout = timeout
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="verify")

    def score(self, completion, gold):
        future = self.pool.submit(parse_answer, completion)
        try:
            return 1.0 if future.result(timeout=self.timeout) == gold else 0.0
        except (TimeoutError, ValueError, SyntaxError):
            return 0.0
