#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
NODES=`scontrol show hostnames $SLURM_JOB_NODELIST`
srun torchrun --nnodes=2 --nproc-per-node=8 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint="$NODES:29501" train.py
