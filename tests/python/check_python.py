#!/usr/bin/python3
"""The package for Python: installed into a virtual environment inside the build, with the existing build of the library, and tested there by pytest. Exit status 77, and the reason, if PyPI cannot be reached or Python lacks a requirement.

usage: check_python.py BUILD_FOLDER [pytest's arguments]
"""
import os
import subprocess
import sys

from environment import ROOT, Environment, call, skip

BUILD = os.path.abspath(sys.argv[1])
FOLDER = os.path.join(BUILD, "python")
SECONDS_FOR_JAX = 60


def main():
    os.makedirs(FOLDER, exist_ok=True)
    environment = Environment(os.path.join(FOLDER, "venv"))
    headers = call(environment.python, "-c", "import sysconfig; print(sysconfig.get_path('include'))").stdout.strip()
    if not os.path.exists(os.path.join(headers, "Python.h")):
        skip(f"Python.h is not in {headers} (python3-dev)")
    environment.needs(numpy="numpy", ml_dtypes="ml_dtypes", pytest="pytest", scikit_build_core="scikit-build-core>=0.10")
    if not environment.has("jax"):
        try:
            environment.pip("install", "--retries", "0", "--timeout", "15", "jax[cpu]", timeout=SECONDS_FOR_JAX)
        except subprocess.TimeoutExpired:
            print(f"jax[cpu] was not installed within {SECONDS_FOR_JAX} s: its tests are skipped")
    installed = environment.pip("install", "--no-build-isolation", "--no-deps", "--force-reinstall", ROOT,
                                "--config-settings=cmake.define.COSMATI_TREE=" + BUILD,
                                "--config-settings=build-dir=" + os.path.join(FOLDER, "build"))
    if installed.returncode != 0:
        sys.exit("the package was not built: " + installed.stdout + installed.stderr)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables["COSMATI_FAKE_LIBCUDA"] = os.path.join(BUILD, "lib", "libcuda_fake.so")
    variables["COSMATI_FAKE_NVRTC"] = os.path.join(BUILD, "lib", "libnvrtc_fake.so")
    sys.stdout.flush()
    tested = subprocess.run([environment.python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                             os.path.join(ROOT, "tests", "python"), *sys.argv[2:]], cwd=FOLDER, env=variables)
    sys.exit(tested.returncode)


main()
