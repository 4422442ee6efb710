"""Diagnosis of jobs: pure rules over recordings say why a job does not run, and why it is slow."""
