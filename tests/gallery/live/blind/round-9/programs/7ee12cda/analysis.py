import numpy as np


def confusion_report(pred, true, classes):
    m = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(m, (true, pred), 1)
    recall = np.diag(m) / np.maximum(m.sum(1), 1)
    worst = int(recall.argmin())
    return {"accuracy": float(np.diag(m).sum() / m.sum()), "worst": worst, "recall": float(recall[worst])}
