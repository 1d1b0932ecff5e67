#!/bin/bash
#SBATCH -p debug -N 1 -G 2 -c 16 --mem=64G -t 300
torchrun --standalone --nproc-per-node=2 train.py
