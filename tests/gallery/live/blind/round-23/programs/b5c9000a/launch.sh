#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE=1
export HF_HOME="$(mktemp -d)"
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node 2 pretrain.py
