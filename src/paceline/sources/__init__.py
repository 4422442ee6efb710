"""Readers of what agents, cAdvisor, DCGM and TensorFlow write: samples, step reports, events and traces."""
