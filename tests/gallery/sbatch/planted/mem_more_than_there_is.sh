#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8 --cpus-per-task=48
#SBATCH --mem=2T
#SBATCH --time=02:00:00
torchrun --standalone --nproc-per-node=8 train.py
