#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=2 --cpus-per-task=4
#SBATCH --time=02:00:00
torchrun --standalone --nproc-per-node=2 train.py
