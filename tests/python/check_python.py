#!/usr/bin/python3
"""The package for Python: installed into a virtual environment inside the build, with the library that is built already, and tested
by pytest there. Exit status 77, and the reason, where PyPI cannot be reached or Python lacks what is needed.

usage: check_python.py BUILD_FOLDER [pytest's arguments]
"""
import os
import subprocess
import sys

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(BUILD, "python")
PYTHON = os.path.join(FOLDER, "venv", "bin", "python")
NEEDED = ["numpy", "ml_dtypes", "pytest", "scikit-build-core>=0.10"]
SECONDS_FOR_JAX = 60


def call(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def skip(reason):
    print("SKIPPED: " + reason)
    sys.exit(77)


def pip(*arguments, **options):
    return call(PYTHON, "-m", "pip", "--disable-pip-version-check", "-q", *arguments, **options)


def has(module):
    return call(PYTHON, "-c", f"import {module}").returncode == 0


def make_environment():
    if not os.path.exists(PYTHON):
        made = call("/usr/bin/python3", "-m", "venv", os.path.dirname(os.path.dirname(PYTHON)))
        if made.returncode != 0:
            skip("no virtual environment can be made (python3-venv): " + made.stdout + made.stderr)
    headers = call(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))").stdout.strip()
    if not os.path.exists(os.path.join(headers, "Python.h")):
        skip(f"Python.h is not in {headers} (python3-dev)")
    if not all(has(name) for name in ("numpy", "ml_dtypes", "pytest", "scikit_build_core")):
        got = pip("install", "--retries", "1", "--timeout", "15", *NEEDED)
        if got.returncode != 0:
            skip("PyPI gives no " + ", ".join(NEEDED) + ": " + got.stderr[-2000:])
    if not has("jax"):
        try:
            pip("install", "--retries", "0", "--timeout", "15", "jax[cpu]", timeout=SECONDS_FOR_JAX)
        except subprocess.TimeoutExpired:
            print(f"jax[cpu] was not installed within {SECONDS_FOR_JAX} s: its tests are skipped")


def main():
    os.makedirs(FOLDER, exist_ok=True)
    make_environment()
    installed = pip("install", "--no-build-isolation", "--no-deps", "--force-reinstall", ROOT,
                    "--config-settings=cmake.define.COSMATI_TREE=" + BUILD,
                    "--config-settings=build-dir=" + os.path.join(FOLDER, "build"))
    if installed.returncode != 0:
        sys.exit("the package was not built: " + installed.stdout + installed.stderr)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    tested = subprocess.run([PYTHON, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                             os.path.join(ROOT, "tests", "python"), *sys.argv[2:]], cwd=FOLDER, env=environment)
    sys.exit(tested.returncode)


main()
