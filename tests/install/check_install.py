#!/usr/bin/python3
"""Installs what has been built, moves it, and builds and runs a stranger's project against it: by find_package, by pkg-config.

usage: check_install.py BUILD_FOLDER CMAKE     exit status 1 and a line for what is not as it should be
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def run(*command, **options):
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", **options.pop("environment", {}))
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def require(holds, message):
    if not holds:
        sys.exit(message)


def headers(folder):
    return {os.path.relpath(os.path.join(path, name), folder)
            for path, _, names in os.walk(folder) for name in names if name.endswith(".h")}


def check_files(prefix):
    missing = headers(os.path.join(ROOT, "include")) - headers(os.path.join(prefix, "include"))
    require(not missing, f"not installed: {', '.join(sorted(missing))}")
    for name in ("bin/cosmati", "share/doc/cosmati/LICENSE"):
        require(os.path.exists(os.path.join(prefix, name)), f"not installed: {name}")


def check_generator(prefix, work):
    """The generator that comes with the program, where the sources have it."""
    if not os.path.exists(os.path.join(ROOT, "share/cosmati/dcgan-fashion.safetensors")):
        return
    run(os.path.join(prefix, "bin/cosmati"), "generate", "dcgan", "--count", "1", "--image", os.path.join(work, "grid.png"))


def check_program(prefix, build):
    """The installed program finds the library, and the library its module, in the place where they are now."""
    told = run(os.path.join(prefix, "bin/cosmati"), "info")
    built = os.path.exists(os.path.join(build, "lib/libcosmati_onednn.so"))
    require(not built or re.search(r"oneDNN +yes", told), f"cosmati info has no oneDNN:\n{told}")


def check_cmake(prefix, work, cmake):
    folder = os.path.join(work, "build")
    run(cmake, "-S", os.path.join(HERE, "project"), "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    run(cmake, "--build", folder)
    told = run(os.path.join(folder, "program"))
    require("cpu, by " in told and "11 in the corner, 26 inside" in told, f"the C program said:\n{told}")
    run(os.path.join(folder, "both"))


def check_pkg_config(prefix, work):
    package = [os.path.join(path, "pkgconfig") for path, names, _ in os.walk(prefix) if "pkgconfig" in names]
    flags = run("pkg-config", "--cflags", "--libs", "cosmati", environment={"PKG_CONFIG_PATH": package[0]}).split()
    version = run("pkg-config", "--modversion", "cosmati", environment={"PKG_CONFIG_PATH": package[0]}).strip()
    with open(os.path.join(prefix, "include/cosmati.h"), encoding="utf-8") as file:
        parts = re.findall(r"#define COSMATI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    require(version == ".".join(parts), f"pkg-config has version {version}, cosmati.h {'.'.join(parts)}")
    program = os.path.join(work, "program")
    run("cc", "-std=c11", os.path.join(HERE, "project/program.c"), "-o", program, *flags)
    told = run(program, "reference", environment={"LD_LIBRARY_PATH": os.path.dirname(package[0])})
    require("reference, by reference: 11 in the corner, 26 inside" in told, f"the C program said:\n{told}")


def check_manual():
    """docs/c-api.md has this program, word for word."""
    with open(os.path.join(HERE, "project/program.c"), encoding="utf-8") as file:
        program = file.read()
    with open(os.path.join(ROOT, "docs/c-api.md"), encoding="utf-8") as file:
        require(program in file.read(), "docs/c-api.md does not have tests/install/project/program.c")


def main():
    build, cmake = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        run(cmake, "--install", build, "--prefix", os.path.join(work, "first"))
        prefix = os.path.join(work, "moved")
        shutil.move(os.path.join(work, "first"), prefix)
        check_files(prefix)
        check_program(prefix, build)
        check_generator(prefix, work)
        check_cmake(prefix, work, cmake)
        check_pkg_config(prefix, work)
    check_manual()
    print("installed, moved, found, built, run")


main()
