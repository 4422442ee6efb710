"""What a layout of a job would bring, before anything runs: a network of resources, solved or simulated."""
