import numpy as np
import torch


def get_confusion_matrix(label, pred, num_class, ignore):
    """Rows are ground truth, columns are predictions."""
    seg_pred = pred.argmax(1).numpy().astype(np.uint8)
    seg_gt = label.numpy().astype(np.int32)
    confusion = np.zeros((num_class, num_class))
    for gt_img, pred_img in zip(seg_gt, seg_pred):
        for gt_row, pred_row in zip(gt_img, pred_img):
            for g, p in zip(gt_row, pred_row):
                if g != ignore:
                    confusion[g, p] += 1
    return confusion


@torch.no_grad()
def validate(model, loader, criterion, num_class, ignore=255, scales=(1.0, 0.75)):
    model.eval()
    nums = len(scales)
    confusion = np.zeros((num_class, num_class, nums))
    losses = []
    for image, label in loader:
        for k, s in enumerate(scales):
            x = image if s == 1.0 else torch.nn.functional.interpolate(
                image, scale_factor=s, mode="bilinear", align_corners=False)
            pred = torch.nn.functional.interpolate(
                model(x), size=label.shape[-2:], mode="bilinear", align_corners=False)
            confusion[..., k] += get_confusion_matrix(label, pred, num_class, ignore)
        losses.append(criterion(pred, label).item())
    model.train()
    tp = np.stack([np.diag(confusion[..., k]) for k in range(nums)])
    pos, res = confusion.sum(1).T, confusion.sum(0).T
    iou = tp / np.maximum(1.0, pos + res - tp)
    return float(np.mean(losses)), float(iou[0].mean()), iou[0]
