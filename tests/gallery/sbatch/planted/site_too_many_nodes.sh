#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=64 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=02:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun torchrun --nnodes=64 --nproc-per-node=8 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29501 train.py
