class EarlyStopping:
    def __init__(self, patience, min_delta=0.0, warmup=0, smooth=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.warmup = warmup
        self.smooth = smooth
        self.value = None
        self.best = float("inf")
        self.bad = 0
        self.seen = 0

    def update(self, loss):
        self.seen += 1
        self.value = loss if self.value is None else self.smooth * self.value + (1 - self.smooth) * loss
        if self.value < self.best - self.min_delta:
            self.best = self.value
            self.bad = 0
        else:
            self.bad += 1
        return self.seen > self.warmup and self.bad >= self.patience
