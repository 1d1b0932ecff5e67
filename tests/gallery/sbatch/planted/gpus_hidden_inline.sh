#!/bin/bash
#SBATCH --partition=gpu
#SBATCH -N1 --gres=gpu:8 -c 48
#SBATCH --time=02:00:00
CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=8 train.py
