#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1
export HF_DATASETS_CACHE="$(mktemp -d)"
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 4 train_stream.py --epochs 50
