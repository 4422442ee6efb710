"""Rendering of a job into plans, agent configs and Kubernetes objects, without side effects."""
