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
module load singularity
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
export SINGULARITYENV_MASTER_ADDR=$MASTER_ADDR SINGULARITYENV_MASTER_PORT=$MASTER_PORT
srun bash -c 'SINGULARITYENV_RANK=$SLURM_PROCID SINGULARITYENV_LOCAL_RANK=$SLURM_LOCALID SINGULARITYENV_WORLD_SIZE=$SLURM_NTASKS singularity exec --nv -e /work/images/t.sif python train.py'
