"""Brings releases to readers: into files and databases of their own, which hold nothing else."""
