#!/bin/bash
#SBATCH -p gpu -N 2 --ntasks-per-node=8 --gpus-per-node=8 -c 8
#SBATCH -t 08:00:00
source /work/env/bin/activate
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
python train.py --epochs 10
