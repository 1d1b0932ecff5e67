#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --ntasks=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=02:00:00
srun python spawn.py --world-size 8
