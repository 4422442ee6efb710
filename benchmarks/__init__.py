"""Every figure that Paceline claims, measured: ``python -m benchmarks NAME [--quick] [--json FILE]``."""
