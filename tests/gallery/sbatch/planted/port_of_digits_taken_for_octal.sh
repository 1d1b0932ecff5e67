#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + $(echo -n $SLURM_JOB_ID | tail -c 4)))
srun python train.py
