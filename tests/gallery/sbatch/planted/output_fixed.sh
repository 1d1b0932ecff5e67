#!/bin/bash
#SBATCH --partition=gpu
#SBATCH -o train.log -e train.err
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=02:00:00
torchrun --standalone --nproc-per-node=8 train.py
