from collections import OrderedDict


class LogBuffer:
    def __init__(self):
        self.val_history = OrderedDict()
        self.n_history = OrderedDict()
        self.output = OrderedDict()
        self.ready = False

    def clear(self):
        self.val_history.clear()
        self.n_history.clear()
        self.clear_output()

    def clear_output(self):
        self.output.clear()
        self.ready = False

    def update(self, values, count=1):
        for k, v in values.items():
            self.val_history.setdefault(k, []).append(v)
            self.n_history.setdefault(k, []).append(count)

    def average(self, n=0):
        for k in self.val_history:
            vals, nums = self.val_history[k][-n:], self.n_history[k][-n:]
            self.output[k] = sum(v * c for v, c in zip(vals, nums)) / sum(nums)
        self.ready = True
