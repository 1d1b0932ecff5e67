#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
SCRIPT=examples/train.py
srun torchrun --standalone --nproc-per-node=8 $PYTHON_FILE --epochs 3
