#!/bin/bash
#SBATCH --job-name=climate
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --mem=400G
#SBATCH --time=10:00:00
#SBATCH --output=climate_%j.out

module load apptainer

export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))

srun apptainer exec --nv --cleanenv --env "OMP_NUM_THREADS=8,HF_HOME=/work/hf" -B /work:/work \
    /work/images/climate.sif torchrun --nnodes=2 --nproc_per_node=8 \
    --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT \
    train.py -e 20 --config era5.yaml
