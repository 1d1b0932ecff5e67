#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --array=0-31%8
#SBATCH --ntasks=1 --gpus-per-task=1 --cpus-per-task=8 --mem=32G
#SBATCH --time=04:00:00
#SBATCH --output=sweep/%A_%a.out
mkdir -p results
python train.py --seed $SLURM_ARRAY_TASK_ID --num_workers 6
