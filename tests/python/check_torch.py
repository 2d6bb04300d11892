#!/usr/bin/python3
"""The package in the PyTorch of TORCH_PYTHON, a Python with PyTorch 2.4 or later; exit status 77, and the reason, if there is none. Uses the package that the test `python` installed.

usage: check_torch.py BUILD_FOLDER
"""
import glob
import os
import subprocess
import sys
import tempfile

from environment import call, skip

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        skip("TORCH_PYTHON names no Python with PyTorch 2.4 or later")
    if call(python, "-c", "import torch").returncode != 0:
        sys.exit(f"TORCH_PYTHON={python} has no PyTorch")
    package = glob.glob(os.path.join(os.path.abspath(sys.argv[1]), "python", "venv", "lib", "python3*", "site-packages", "cosmati"))
    if not package:
        skip("the test `python` has installed no package")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(package[0], os.path.join(folder, "cosmati"))  # nothing else from that environment
        codes = [subprocess.run([python, os.path.join(HERE, name)], timeout=500, env=dict(os.environ, PYTHONPATH=folder, OMP_WAIT_POLICY="passive")).returncode
                 for name in ("check_torch_operators.py", "check_torch_modules.py")]
        sys.exit(max(map(abs, codes)))


main()
