class EarlyStoppingCallback:
    def __init__(self, patience, threshold=0.0):
        self.patience, self.threshold = patience, threshold
        self.best, self.bad = None, 0

    def on_evaluate(self, metrics, control):
        value = metrics["eval_f1"]
        if self.best is None or value > self.best + self.threshold:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad >= self.patience:
            control["should_training_stop"] = True
