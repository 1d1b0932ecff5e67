class EpochCounterWithStopper:
    def __init__(self, limit, patience, min_delta):
        self.limit, self.patience, self.min_delta = limit, patience, min_delta
        self.current = 0
        self.best, self.best_epoch = float("inf"), 0
        self.should_stop = False

    def __iter__(self):
        return self

    def __next__(self):
        if self.current >= self.limit or self.should_stop:
            raise StopIteration
        self.current += 1
        return self.current

    def update_metric(self, score):
        if score < self.best - self.min_delta:
            self.best, self.best_epoch = score, self.current
        if self.current - self.best_epoch >= self.patience:
            self.should_stop = True
