#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1 --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
export OMP_NUM_THREADS=8
torchrun --standalone --nproc-per-node=4 train.py
