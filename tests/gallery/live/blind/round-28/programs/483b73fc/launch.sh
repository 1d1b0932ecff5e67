#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 tools_train.py --interval 10
