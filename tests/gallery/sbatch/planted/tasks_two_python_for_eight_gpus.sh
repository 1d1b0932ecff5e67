#!/bin/bash
#SBATCH -p gpu
#SBATCH -N 2
#SBATCH --ntasks=2
#SBATCH --gres=gpu:a100:4
#SBATCH -c 16
#SBATCH -t 4:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((15000 + $SLURM_JOB_ID % 5000))
srun --cpu-bind=cores python -u main.py --config conf.yaml
