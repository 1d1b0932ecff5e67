#!/bin/bash
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=8
#SBATCH --time=10:00:00 --output=%x-%j.out

module load pytorch/2.5
export MASTER_ADDR=$(hostname)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
mpirun -np 16 --map-by ppr:8:node -x MASTER_ADDR -x MASTER_PORT python main.py
