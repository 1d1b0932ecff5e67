#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=16 MKL_NUM_THREADS=16
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 run.py --config config.json
