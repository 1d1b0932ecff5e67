#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun torchrun --nnodes=2 --nproc-per-node=8 --rdzv_id=$SLURM_JOB_ID --rdzv_endpoint=$head:29504 train.py
