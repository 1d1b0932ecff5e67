#!/bin/bash
#SBATCH --partition=gpu --account=ml
#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=8
#SBATCH --mem=0 --time=04:00:00
#SBATCH --output=%x_%j.out
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
export NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5
srun --container-image=nvcr.io#nvidia/pytorch:24.05-py3 --container-mounts=/work:/work --container-workdir=/work/project \
     python train.py --workers 7
