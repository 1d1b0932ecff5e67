#!/bin/bash
#SBATCH --partition=debug
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8 --cpus-per-task=24
#SBATCH --time=00:30:00
torchrun --standalone --nproc-per-node=8 train.py
