#!/bin/bash
sbatch --parsable --output=slurm-%j.out job.sbatch
