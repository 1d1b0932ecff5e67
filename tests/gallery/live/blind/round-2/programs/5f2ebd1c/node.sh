#!/bin/bash
echo "node $SLURM_NODEID of job, head $1"
export LOGLEVEL=INFO
"$PYTHON" -m torch.distributed.run \
    --nnodes 2 \
    --nproc-per-node 2 \
    --rdzv-id $RANDOM \
    --rdzv-backend c10d \
    --rdzv-endpoint "$1" \
    multinode.py --total-epochs 50 --save-every 10
