#!/bin/bash
cd "$(dirname "$0")"
export ACCELERATE_USE_CPU=1 OMP_NUM_THREADS=2 HF_HOME=${TMPDIR:-/tmp}/hf-$$ HF_HUB_OFFLINE=1
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py
