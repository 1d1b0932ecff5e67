import time

import torch.distributed as dist
from accelerate.utils import broadcast_object_list


def overlap(pred, ref):
    pred, ref = [int(t) for t in pred if t > 1], [int(t) for t in ref if t > 1]
    rows = [[0] * (len(ref) + 1) for _ in range(len(pred) + 1)]
    for i, p in enumerate(pred):
        for j, r in enumerate(ref):
            rows[i + 1][j + 1] = rows[i][j] + 1 if p == r else max(rows[i][j + 1], rows[i + 1][j])
    lcs = rows[-1][-1]
    return 2 * lcs / max(1, len(pred) + len(ref))


def compute_rouge(eval_pred):
    """Scores on the main process; everyone gets its result."""
    result = [None]
    if dist.get_rank() == 0:
        scores = []
        for pred, ref in zip(eval_pred.predictions, eval_pred.label_ids):
            scores.append(overlap(pred, ref))
            time.sleep(0.1)
        result = [{"rougeL": sum(scores) / len(scores)}]
    broadcast_object_list(result, from_process=0)
    return result[0]
