"""Every figure that Paceline claims, measured: ``python -m benchmarks NAME [--quick] [--json FILE]``."""

import sys
from pathlib import Path

# What benchmarks share with tests (servers, PostgreSQL, clusters, kills) is the package ``support`` there.
sys.path.insert(1, str(Path(__file__).parent.parent / "tests"))
