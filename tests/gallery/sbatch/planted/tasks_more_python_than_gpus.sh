#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --time=04:00:00
export MASTER_ADDR=$(hostname -s)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun python train.py
