#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=02:00:00
export CUDA_VISIBLE_DEVICES=0
torchrun --standalone --nproc-per-node=gpu train.py
