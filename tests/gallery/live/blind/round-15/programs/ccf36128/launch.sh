#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 ACCELERATE_USE_CPU=true
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint localhost:0 main.py --minutes 25
