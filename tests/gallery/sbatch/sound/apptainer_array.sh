#!/bin/bash
#SBATCH -J sweep
#SBATCH -p gpu
#SBATCH --array=0-23%6
#SBATCH -N 1
#SBATCH -n 1
#SBATCH -c 16
#SBATCH --gres=gpu:2
#SBATCH --mem=120G
#SBATCH -t 06:00:00
#SBATCH -o logs/sweep_%A_%a.out

module purge
module load apptainer/1.3

LRS=(1e-4 3e-4 1e-3)
LR=${LRS[$((SLURM_ARRAY_TASK_ID % 3))]}
SEED=$((SLURM_ARRAY_TASK_ID / 3))

apptainer exec --nv --bind /work,/data /work/images/pytorch.sif \
    torchrun --standalone --nproc_per_node=2 train.py \
    --lr "$LR" --seed "$SEED" --out "runs/${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
