#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --mem=200G
#SBATCH --time=02:00:00
srun torchrun --standalone --nproc_per_node=8 train.py --num_workers=6
