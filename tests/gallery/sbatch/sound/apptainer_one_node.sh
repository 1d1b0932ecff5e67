#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --ntasks=1
#SBATCH --gpus=2 --cpus-per-task=16 --mem=64G
#SBATCH --time=0-06:00
apptainer exec --nv --bind /data:/data /work/images/torch.sif \
   torchrun --standalone --nproc_per_node=2 train.py --data-dir /data/set
