#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=2h
torchrun --standalone --nproc-per-node=8 train.py
