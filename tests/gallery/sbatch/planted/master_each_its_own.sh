#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
srun bash -c 'export MASTER_ADDR=$(hostname) MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000)); export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID; python train.py'
