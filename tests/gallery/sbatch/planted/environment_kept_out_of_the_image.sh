#!/bin/bash
#SBATCH --job-name=climate
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --mem=400G
#SBATCH --time=10:00:00
#SBATCH --output=climate_%j.out

module load apptainer

export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=29501
export WORLD_SIZE=$SLURM_NTASKS

# --cleanenv: the modules of the host must not get into the image
srun apptainer exec --nv --cleanenv -B /work:/work /work/images/climate.sif \
    bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID python train.py --config era5.yaml'
