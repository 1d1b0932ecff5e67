#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --array=0-7
#SBATCH --nodes=1 --ntasks-per-node=2 --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
export MASTER_ADDR=localhost
export MASTER_PORT=29500
srun python train.py --seed $SLURM_ARRAY_TASK_ID
