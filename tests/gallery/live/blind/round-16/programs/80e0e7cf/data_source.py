import json


class PromptBuffer:
    """Reads prompt groups from a jsonl shard, starting over at the end of the file."""

    def __init__(self, path):
        self.path = path
        with open(path) as f:
            self.lines = f.read().splitlines()
        self.cursor = 0
        self.epoch = 0
        self.group_id = 0

    def __len__(self):
        return len(self.lines)

    def get_samples(self, n):
        rows = [json.loads(line) for line in self.lines[self.cursor : self.cursor + n]]
        self.cursor += n
        if self.cursor + n > len(self.lines):
            self.cursor = 0
            self.epoch += 1
        groups = []
        for row in rows:
            groups.append((self.group_id, row))
            self.group_id += 1
        return groups
