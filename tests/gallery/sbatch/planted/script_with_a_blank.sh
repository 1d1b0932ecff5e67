#!/bin/bash
#SBATCH --partition=gpu
# SBATCH --time=02:00:00
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=64
torchrun --standalone --nproc-per-node=8 train.py
