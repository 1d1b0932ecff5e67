#!/bin/bash
#SBATCH --job-name=nemo-sft
#SBATCH --partition=gpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --mem=0
#SBATCH --exclusive
#SBATCH --time=08:00:00
#SBATCH --output=%x-%j.out

set -euo pipefail

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
export MASTER_ADDR MASTER_PORT
export NCCL_DEBUG=WARN

MOUNTS="/work/project:/workspace,/data:/data:ro"

srun --container-image=nvcr.io#nvidia/pytorch:24.05-py3 \
     --container-mounts="$MOUNTS" --container-workdir=/workspace \
     --no-container-mount-home --kill-on-bad-exit=1 \
     bash -c 'torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 --node_rank=$SLURM_NODEID \
        --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT sft.py --data /data/sft'
