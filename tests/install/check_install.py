#!/usr/bin/python3
"""Installs the build, moves it, and uses it like an external user: the program with its suites, under mpirun; projects by
find_package and by pkg-config; the programs of README.md and docs/c-api.md as they are printed; the examples.

usage: check_install.py BUILD_FOLDER CMAKE     exit status 1 and a line for each failure
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "docs"))
import snippets  # noqa: E402


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
    for name in ("bin/cosmati", "share/doc/cosmati/LICENSE", "share/doc/cosmati/README.md", "share/cosmati/suites/llm.txt"):
        require(os.path.exists(os.path.join(prefix, name)), f"not installed: {name}")


def check_links(prefix):
    """Checks that links between documents, pictures and examples work in the installed tree."""
    top = os.path.join(prefix, "share/doc/cosmati")
    count = 0
    for path, _, names in os.walk(top):
        for name in (name for name in names if name.endswith(".md")):
            with open(os.path.join(path, name), encoding="utf-8") as file:
                links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read())
            count += len(links)
            for link in links:
                require(os.path.exists(os.path.join(path, link)), f"{os.path.join(path, name)} leads to {link}, which is not there")
    require(count > 20, f"only {count} links in {top}")


def check_suites(prefix):
    program = os.path.join(prefix, "bin/cosmati")
    listed = run(program, "list", "suites", cwd="/")
    for name in os.listdir(os.path.join(ROOT, "bench/suites")):
        require(re.search(rf"\b{name.removesuffix('.txt')}\b", listed), f"cosmati list suites has no {name}:\n{listed}")
    run(program, "verify", "conv", "--suite", "lenet", "--most-operations", "1e6", "--backend", "cpu", cwd="/")
    run(program, "bench", "conv", "--suite", "lenet", "--images", "1", "--slices", "2", "--slice-seconds", "0.01", "--backend", "cpu",
        cwd="/")


def check_generator(prefix, work):
    """Checks the shipped generator, if the sources contain it."""
    if not os.path.exists(os.path.join(ROOT, "share/cosmati/dcgan-fashion.safetensors")):
        return
    run(os.path.join(prefix, "bin/cosmati"), "generate", "dcgan", "--count", "1", "--image", os.path.join(work, "grid.png"))


def check_program(prefix, build):
    """Checks that the moved program finds the library, and the library its module."""
    told = run(os.path.join(prefix, "bin/cosmati"), "info")
    built = os.path.exists(os.path.join(build, "lib/libcosmati_onednn.so"))
    require(not built or re.search(r"oneDNN +yes", told), f"cosmati info has no oneDNN:\n{told}")


def check_emulator(prefix, build, work):
    """Checks that the installed library finds the kernels of the backend emulator."""
    require(os.path.exists(os.path.join(build, "lib/libcosmati_emulator.so")), f"{build} has no libcosmati_emulator.so, which the tests build")
    run(os.path.join(prefix, "bin/cosmati"), "verify", "gemm", "--backend", "emulator", "--size", "5x7x3", cwd=work)


def check_mpi(prefix, build, work):
    """Checks that two processes find the module that links MPI."""
    if not os.path.exists(os.path.join(build, "lib/libcosmati_mpi.so")) or shutil.which("mpirun") is None:
        print("SKIPPED: there is no MPI here")
        return
    generator = os.path.join(prefix, "share/cosmati/dcgan-fashion.safetensors")
    if not os.path.exists(generator):
        print("SKIPPED: the sources have no trained generator for mpirun to draw with")
        return
    images = os.path.join(work, "images.npy")
    run("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", os.path.join(prefix, "bin/cosmati"), "generate", "dcgan",
        "--count", "6", "--batch", "2", "--backend", "cpu", "--threads", "1", "--output", images)
    require(os.path.getsize(images) > 6 * 64 * 64 * 3 * 4, f"{images} is too short for 6 images")


def check_cmake(prefix, work, cmake):
    folder = os.path.join(work, "build")
    project = shutil.copytree(os.path.join(HERE, "project"), os.path.join(work, "project"))
    with open(os.path.join(project, "readme.cpp"), "w", encoding="utf-8") as file:
        file.write(snippets.program("README.md", "cpp", "int main"))
    with open(os.path.join(project, "program.c"), "w", encoding="utf-8") as file:
        file.write(snippets.program("docs/c-api.md", "c", "int main"))
    run(cmake, "-S", project, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    run(cmake, "--build", folder)
    told = run(os.path.join(folder, "readme"))
    require("d[0] = 66" in told, f"the program of README.md said:\n{told}")
    told = run(os.path.join(folder, "program"))
    require("cpu, by " in told and "11 in the corner, 26 inside" in told, f"the C program said:\n{told}")
    run(os.path.join(folder, "both"))


def check_examples(prefix, work, cmake):
    """Builds the library's installed examples as a project."""
    source, folder = os.path.join(prefix, "share/doc/cosmati/examples/library"), os.path.join(work, "examples")
    run(cmake, "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", folder)
    names = [name.removesuffix(".cpp") for name in os.listdir(source) if name.endswith(".cpp")]
    require(len(names) >= 5, f"{source} has only {names}")
    for name in names:
        run(os.path.join(folder, name))


def check_pkg_config(prefix, work):
    package = [os.path.join(path, "pkgconfig") for path, names, _ in os.walk(prefix) if "pkgconfig" in names]
    flags = run("pkg-config", "--cflags", "--libs", "cosmati", environment={"PKG_CONFIG_PATH": package[0]}).split()
    version = run("pkg-config", "--modversion", "cosmati", environment={"PKG_CONFIG_PATH": package[0]}).strip()
    with open(os.path.join(prefix, "include/cosmati.h"), encoding="utf-8") as file:
        parts = re.findall(r"#define COSMATI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
    require(version == ".".join(parts), f"pkg-config has version {version}, cosmati.h {'.'.join(parts)}")
    program = os.path.join(work, "program")
    run("cc", "-std=c11", os.path.join(work, "project/program.c"), "-o", program, *flags)
    told = run(program, "reference", environment={"LD_LIBRARY_PATH": os.path.dirname(package[0])})
    require("reference, by reference: 11 in the corner, 26 inside" in told, f"the C program said:\n{told}")
    run("c++", "-std=c++20", os.path.join(work, "project/readme.cpp"), "-o", program, *flags)
    told = run(program, environment={"LD_LIBRARY_PATH": os.path.dirname(package[0])})
    require("d[0] = 66" in told, f"the program of README.md said:\n{told}")


def main():
    build, cmake = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        run(cmake, "--install", build, "--prefix", os.path.join(work, "first"))
        prefix = os.path.join(work, "moved")
        shutil.move(os.path.join(work, "first"), prefix)
        check_files(prefix)
        check_links(prefix)
        check_program(prefix, build)
        check_suites(prefix)
        check_generator(prefix, work)
        check_emulator(prefix, build, work)
        check_mpi(prefix, build, work)
        check_cmake(prefix, work, cmake)
        check_pkg_config(prefix, work)
        check_examples(prefix, work, cmake)
    print("installed, moved, found, built, run")


main()
