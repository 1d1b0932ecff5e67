class MetricTracker:
    def __init__(self, metric_name, patience=None):
        self.should_decrease = metric_name.startswith("-")
        self.name = metric_name[1:]
        self.patience = patience
        self.best = None
        self.best_epoch = None
        self._since_best = 0
        self._epoch = 0

    def add_metrics(self, metrics):
        value = metrics[self.name]
        better = self.best is None or (value < self.best if self.should_decrease else value > self.best)
        if better:
            self.best, self.best_epoch, self._since_best = value, self._epoch, 0
        else:
            self._since_best += 1
        self._epoch += 1

    def should_stop_early(self):
        return self.patience is not None and self._since_best >= self.patience

    def is_best_so_far(self):
        return self._since_best == 0
