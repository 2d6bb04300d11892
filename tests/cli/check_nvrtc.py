#!/usr/bin/python3
"""Which NVRTC the program opens, by the version of the driver: with fakes of both.

usage: check_nvrtc.py COSMATI FAKE_DRIVER FAKE_NVRTC
"""
import json
import os
import subprocess
import sys
import tempfile

COSMATI, DRIVER, NVRTC = map(os.path.abspath, sys.argv[1:4])
failures = []


def state(**environment):
    done = subprocess.run([COSMATI, "info", "--json"], capture_output=True, text=True, timeout=120, check=True, env={**os.environ, **environment})
    line, = (line for line in map(json.loads, done.stdout.splitlines()) if line["name"] == "NVRTC")
    return line["here"], line["state"]


def expect(found, expected):
    if found != expected:
        failures.append(found)
        print(f"FAIL {found}; expected {expected}")


with tempfile.TemporaryDirectory() as folder:
    for version in (11, 12, 13):
        os.symlink(NVRTC, f"{folder}/libnvrtc.so.{version}")
    both = {"LD_LIBRARY_PATH": folder, "COSMATI_NVRTC": ""}
    for version, major in (("12040", 12), ("11080", 12), ("13000", 13), ("14000", 13)):
        expect(state(COSMATI_LIBCUDA=DRIVER, COSMATI_FAKE_CUDA_VERSION=version, **both), (True, f"NVRTC {major}.3, {folder}/libnvrtc.so.{major}"))
    expect(state(COSMATI_LIBCUDA=f"{folder}/nothing", **both), (True, f"NVRTC 13.3, {folder}/libnvrtc.so.13"))
    expect(state(COSMATI_NVRTC=f"{folder}/libnvrtc.so.12", COSMATI_LIBCUDA=f"{folder}/nothing"), (True, f"NVRTC 12.3, {folder}/libnvrtc.so.12"))
    expect(state(COSMATI_NVRTC=f"{folder}/libnvrtc.so.11"), (False, f"NVRTC 11.3, {folder}/libnvrtc.so.11, is too old; version 12.3 is required"))
    old = {"COSMATI_NVRTC": f"{folder}/libnvrtc.so.12", "COSMATI_FAKE_NVRTC_MINOR": "2"}
    expect(state(**old), (False, f"NVRTC 12.2, {folder}/libnvrtc.so.12, is too old; version 12.3 is required"))
    here, told = state(COSMATI_NVRTC=f"{folder}/nothing")
    expect((here, told.startswith(f"COSMATI_NVRTC names {folder}/nothing, which cannot be opened")), (False, True))
print(f"{len(failures)} failed")
sys.exit(1 if failures else 0)
