"""What is slow or fragile because of what a script asks of TensorFlow: one rule a file."""
