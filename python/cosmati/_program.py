"""The program `cosmati`, which is part of the package."""
import os
import sys

from ._interop import find_nvrtc


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cosmati")
    find_nvrtc()
    os.execv(program, [program, *sys.argv[1:]])
