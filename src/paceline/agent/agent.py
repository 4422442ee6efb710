"""Starts the replica agent: ``agent.py CONFIG...``. Its code is in `paceline_agent`, beside this file."""

import importlib
import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(importlib.import_module("paceline_agent.main").main(sys.argv[1:]))
