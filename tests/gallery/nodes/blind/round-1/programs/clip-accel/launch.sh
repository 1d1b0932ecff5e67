#!/bin/bash
# the same on both machines, MACHINE_RANK apart
export ACCELERATE_USE_CPU=true ACCELERATE_MIXED_PRECISION=no
exec torchrun --nnodes 2 --node-rank $POD_INDEX --nproc-per-node 2 --master-addr node1 --master-port 29677 \
    train_clip.py --data /scratch/laion --epochs 40
