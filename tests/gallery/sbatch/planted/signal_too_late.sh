#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=12:00:00
#SBATCH --signal=SIGTERM@15
torchrun --standalone --nproc-per-node=8 train.py
