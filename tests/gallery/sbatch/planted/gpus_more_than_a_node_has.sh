#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=a100:16
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
torchrun --standalone --nproc-per-node=16 train.py
