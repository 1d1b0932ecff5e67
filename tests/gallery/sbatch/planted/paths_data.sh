#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=02:00:00
DATA=/data/imagenet
torchrun --standalone --nproc-per-node=8 train.py --data-path $DATA/train --save-dir /work/ckpt/new
