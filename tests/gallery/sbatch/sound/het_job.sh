#!/bin/bash
#SBATCH --partition=cpu --nodes=1 --ntasks=1 --cpus-per-task=4
#SBATCH --time=02:00:00
#SBATCH hetjob
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=8
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_1" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun --het-group=1 python train.py
