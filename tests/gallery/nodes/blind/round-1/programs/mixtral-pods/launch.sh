#!/bin/bash
# JobSet: two pods of two processes
export JOB_COMPLETION_INDEX=$POD_INDEX
export MASTER_ADDR=node1 MASTER_PORT=29500
exec torchrun --nnodes=2 --node-rank=$JOB_COMPLETION_INDEX --nproc-per-node=2 \
    --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT sft.py --weights /scratch/hub/mixtral-tiny
