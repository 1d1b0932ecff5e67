#!/bin/bash
cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1
exec $PYTHON train_seg.py --gpus 3 --output runs/pid_s
