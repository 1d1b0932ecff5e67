#!/bin/bash
#SBATCH --job-name=resnet
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --mem=240G
#SBATCH --time=08:00:00
#SBATCH --output=%x-%j.out

module purge
module load python/3.11 cuda/12.4
source /work/env/bin/activate

export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
torchrun --standalone --nnodes=1 --nproc-per-node=4 train.py --num-workers 6 --data /data/imagenet
