#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=02:00:00
#SBATCH --no-requeue
#SBATCH --open-mode=append
torchrun --standalone --nproc-per-node=8 train.py
if [ $? -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
