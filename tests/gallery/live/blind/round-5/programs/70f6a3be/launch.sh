#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export SLURM_JOBID=$((200000 + RANDOM)) SLURM_NNODES=3 SLURM_NTASKS_PER_NODE=1
export MASTER_ADDR=127.0.0.1
export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))
# srun: one task for every node
for n in 0 1 2; do
  SLURM_NODEID=$n SLURM_PROCID=$n bash task.sh &
done
wait
