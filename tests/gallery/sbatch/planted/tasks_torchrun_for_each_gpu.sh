#!/bin/bash
#SBATCH --job-name=llama
#SBATCH --partition=gpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=12:00:00
#SBATCH --output=slurm-%j.out
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=8 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT train.py
