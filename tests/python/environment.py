"""Virtual environments for the tests of the Python package, or the reason why there can be none."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def call(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def skip(reason):
    print("SKIPPED: " + reason)
    sys.exit(77)


class Environment:
    def __init__(self, folder, python="/usr/bin/python3"):
        self.python = os.path.join(folder, "bin", "python")
        if not os.path.exists(self.python):
            made = call(python, "-m", "venv", folder)
            if made.returncode != 0:
                skip("no virtual environment can be made (python3-venv): " + made.stdout + made.stderr)

    def pip(self, *arguments, **options):
        return call(self.python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments, **options)

    def has(self, module):
        return call(self.python, "-c", f"import {module}").returncode == 0

    def needs(self, **packages):
        """Installs packages from PyPI, given as module="requirement", or ends the test with the reason."""
        missing = [package for module, package in packages.items() if not self.has(module)]
        got = self.pip("install", "--retries", "1", "--timeout", "15", *missing) if missing else None
        if got is not None and got.returncode != 0:
            skip("PyPI gives no " + ", ".join(missing) + ": " + got.stderr[-2000:])
