#!/bin/bash
#SBATCH -N 1
#SBATCH -c 16
#SBATCH -t 0-04:00
#SBATCH --mem=64G
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#-C a100
#SBATCH --mail-type=ALL
#SBATCH --array=0-4
#SBATCH --output=%x_%A_%a.out

module load mamba/latest
source activate torch

PROJECT_DIR="${PROJECT_DIR:-${SLURM_SUBMIT_DIR:-$PWD}}"
WORKERS="${WORKERS:-8}"
cd "${PROJECT_DIR}"
mkdir -p logs
SIZES=(256 512 1024 2048 4096)

python -u -c "import torch; print(torch.cuda.is_available())"
srun python -u train.py \
  --workers "${WORKERS}" \
  --batch_size ${SIZES[$SLURM_ARRAY_TASK_ID]} 2>&1 | tee "logs/train_${SLURM_JOB_ID}.log"
