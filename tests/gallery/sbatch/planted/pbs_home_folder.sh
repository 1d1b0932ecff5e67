#!/bin/bash
#PBS -N train
#PBS -l select=1:ncpus=64:ngpus=4:mpiprocs=1
#PBS -l place=scatter
#PBS -l walltime=12:00:00
#PBS -q gpu
#PBS -j oe

module load pytorch/2.5
torchrun --standalone --nproc-per-node=4 train.py
