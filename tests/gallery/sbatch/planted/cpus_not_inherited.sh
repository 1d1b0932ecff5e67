#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
export MASTER_ADDR=$(hostname)
export MASTER_PORT=$((12000 + SLURM_JOB_ID % 20000))
srun python train.py
