#!/bin/bash
#SBATCH --job-name=x
#SBATCH --partition=gpu
#SBATCH --time=08:00:00
#SBATCH --output=x-%j.out
#SBATCH --mem=400G
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun bash -c 'docker run --rm --gpus all --network host -v /work:/work nvcr.io/nvidia/pytorch:24.05-py3 torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT train.py'
