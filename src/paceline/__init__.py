"""Paceline: runs TensorFlow parameter-server training, watches every replica, and says why it is slow."""
