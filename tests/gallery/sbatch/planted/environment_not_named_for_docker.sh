#!/bin/bash
#SBATCH --job-name=x
#SBATCH --partition=gpu
#SBATCH --time=08:00:00
#SBATCH --output=x-%j.out
#SBATCH --mem=400G
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
export WORLD_SIZE=$SLURM_NTASKS
srun bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; docker run --rm --gpus all --network host -v /work:/work -w /work/project pytorch:2.4 python train.py'
