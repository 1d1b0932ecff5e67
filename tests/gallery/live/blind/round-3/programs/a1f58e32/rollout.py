import random


class ToolEnv:
    """Draws completions in the chat format; long ones are cut at max_completion_length."""

    def __init__(self, rank, world, seed=41, max_completion_length=160):
        self.rnd = random.Random(seed + rank)
        self.rank, self.world = rank, world
        self.max_len = max_completion_length
        self.n = 0

    def _num_calls(self, prompt_id):
        # most prompts of the set need one call, the multi-hop ones five
        return 5 if prompt_id % 502 == 501 else 1

    def generate(self, batch):
        out = []
        for _ in range(batch):
            prompt_id = self.n * self.world + self.rank
            self.n += 1
            text = "<think>\n</think>\n"
            for _ in range(self._num_calls(prompt_id)):
                nums = [self.rnd.randrange(20) for _ in range(3)]
                text += '<tool_call>\n{"name": "add", "arguments": {"numbers": %s}}\n</tool_call>\n' % nums
            out.append(text[: self.max_len])
        return out
