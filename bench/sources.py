"""Digests of the sources behind figures other than those of single GPU kernels: coarse, by folders, so that a change of
documents, tests or comments makes no figure stale, and any other change of code that may have run does."""
import functools
import hashlib
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARY = ("CMakeLists.txt", "cmake", "include/cosmati/core", "include/cosmati/epilogue", "include/cosmati/ops", "src/candidates", "src/epilogue", "src/ops", "src/plan",
           "src/program")
NETWORKS = ("nets", "src/io", "src/parallel")
DEVICE = ("include/cosmati", "src/backend/cuda", "src/jit")
SETS = {
    "processor": (*LIBRARY, "src/backend/cpu"),
    "networks on the processor": (*LIBRARY, *NETWORKS, "src/backend/cpu"),
    "networks on a GPU": (*LIBRARY, *NETWORKS, *DEVICE),
    "kernels": (*LIBRARY, *DEVICE),
    "emulator": (*LIBRARY, "include/cosmati", "src/backend/emulator"),
    "program": ("CMakeLists.txt", "cmake", "cli", "include", "nets", "reference", "src"),
}
ENDINGS = (".h", ".hpp", ".c", ".cpp", ".cmake", ".txt", ".html", ".in")
# Comments and white space; quoted text is kept.
CPP = re.compile(r'(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\')|//[^\n]*|/\*.*?\*/|\s+', re.DOTALL)
CMAKE = re.compile(r'("(?:\\.|[^"\\])*")|#[^\n]*|\s+', re.DOTALL)

# A release changes no code, so the version does not count.
VERSION = re.compile(r"^(project\(cosmati VERSION )[0-9.]+", re.MULTILINE)


def code_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    text = VERSION.sub(r"\g<1>0.1.0", text)
    skipped = CMAKE if path.endswith((".cmake", ".txt")) else CPP
    return " ".join(skipped.sub(lambda found: found[1] or " ", text).split())


def files_of(name):
    for entry in SETS[name]:
        path = os.path.join(ROOT, entry)
        if os.path.isfile(path):
            yield path
        for folder, _, files in os.walk(path):
            yield from (os.path.join(folder, file) for file in files if file.endswith(ENDINGS))


@functools.lru_cache(maxsize=None)
def digest(name):
    """Returns the digest of the set of this name."""
    total = hashlib.sha256()
    paths = sorted(set(files_of(name)))
    if not paths:
        raise SystemExit(f"{ROOT} has no file of the sources '{name}'")
    for path in paths:
        total.update(f"{os.path.relpath(path, ROOT)}\n{code_of(path)}\n".encode())
    return total.hexdigest()[:24]
