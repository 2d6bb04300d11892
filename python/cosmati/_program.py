"""The program `cosmati`, which is part of the package."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cosmati")
    os.execv(program, [program, *sys.argv[1:]])
