"""NVRTC of NVIDIA's packages from PyPI, by which the functions and the program compile kernels."""
import json
import os
import subprocess
import sys

import pytest

FAKE_DRIVER = os.environ.get("COSMATI_FAKE_LIBCUDA", "")
FAKE_NVRTC = os.environ.get("COSMATI_FAKE_NVRTC", "")
CHOOSE = """
import os
from cosmati import _interop
_interop.can_open = lambda library: os.path.basename(library) in os.environ["OF_THE_SYSTEM"].split()
_interop.find_nvrtc()
print(os.environ.get("COSMATI_NVRTC", "none"))
"""
PACKAGES = {12: "cuda_nvrtc", 13: "cu13"}

pytestmark = pytest.mark.skipif(not os.path.exists(FAKE_DRIVER) or not os.path.exists(FAKE_NVRTC),
                                reason="COSMATI_FAKE_LIBCUDA and COSMATI_FAKE_NVRTC name no fakes")


def environment(folder, versions, driver, system=""):
    """Makes packages with NVRTC of these major versions; `driver`: the version of CUDA of the driver, 0 if there is none."""
    for version in versions:
        library = folder / "nvidia" / PACKAGES[version] / "lib" / f"libnvrtc.so.{version}"
        library.parent.mkdir(parents=True)
        library.symlink_to(FAKE_NVRTC)
    variables = {name: value for name, value in os.environ.items() if name != "COSMATI_NVRTC"}
    return {**variables, "PYTHONPATH": str(folder), "COSMATI_LIBCUDA": FAKE_DRIVER if driver else "/nowhere/libcuda.so.1",
            "COSMATI_FAKE_CUDA_VERSION": str(driver), "OF_THE_SYSTEM": system}


@pytest.mark.parametrize("driver, packages, system, expected", [
    (13000, (12, 13), "", 13), (12040, (12, 13), "", 12), (0, (12, 13), "", 13), (12040, (13,), "", 13), (13000, (12,), "", 12),
    (12040, (12,), "libnvrtc.so.13", 12), (13000, (12,), "libnvrtc.so.13", None), (12040, (12, 13), "libnvrtc.so.12", None), (13000, (), "", None)])
def test_choice(tmp_path, driver, packages, system, expected):
    told = subprocess.run([sys.executable, "-c", CHOOSE], env=environment(tmp_path, packages, driver, system), capture_output=True, text=True)
    path = os.path.join(tmp_path, "nvidia", PACKAGES.get(expected, ""), "lib", f"libnvrtc.so.{expected}")
    assert told.stdout.strip() == ("none" if expected is None else path), told.stderr


@pytest.mark.parametrize("command", [["-m", "cosmati"], ["-c", "from cosmati._program import main; main()"]])
def test_program(tmp_path, command):
    told = subprocess.run([sys.executable, *command, "info", "--json"], env=environment(tmp_path, (12,), 12040), capture_output=True, text=True)
    nvrtc, = (line for line in map(json.loads, told.stdout.splitlines()) if line["name"] == "NVRTC")
    assert nvrtc["here"] and nvrtc["state"] == f"NVRTC 12.3, {tmp_path}/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    own = dict(environment(tmp_path, (), 12040), COSMATI_NVRTC="/nowhere/libnvrtc.so.12")
    told = subprocess.run([sys.executable, *command, "info", "--json"], env=own, capture_output=True, text=True)
    nvrtc, = (line for line in map(json.loads, told.stdout.splitlines()) if line["name"] == "NVRTC")
    assert not nvrtc["here"] and "COSMATI_NVRTC names /nowhere/libnvrtc.so.12" in nvrtc["state"]
