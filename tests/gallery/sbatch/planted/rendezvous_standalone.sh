#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
srun torchrun --standalone --nproc-per-node=8 train.py
