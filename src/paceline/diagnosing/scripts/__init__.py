"""Rules about scripts that use TensorFlow in a slow or fragile way, one rule per file."""
