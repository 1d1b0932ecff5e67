#!/bin/bash
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=8
#SBATCH --time=10:00:00 --output=%x-%j.out

module load pytorch/2.5
export MASTER_ADDR=$(hostname)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
mpirun -np 16 torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT main.py
