#!/bin/bash
#SBATCH --job-name=folds
#SBATCH --partition=gpu
#SBATCH --array=0-9
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --mem=100G
#SBATCH --time=03:00:00
#SBATCH --output=fold_%A_%a.out

source /work/envs/vision/bin/activate

export MASTER_ADDR=localhost
export MASTER_PORT=29500
srun torchrun --nproc_per_node=2 --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT \
    train_fold.py --fold $SLURM_ARRAY_TASK_ID
