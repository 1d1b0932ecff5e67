#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 HF_DATASETS_CACHE=$PWD/work/cache HF_HUB_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 train_encoder.py
