#!/usr/bin/python3
"""Checks beyond the compiler's: include dependencies, lengths of files and folders, self-contained headers, formatting.

usage: check.py includes|lengths|headers|device-headers|format [--compiler g++]     exit status 1 and a line for each finding
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import sysconfig

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = (".h", ".c", ".cpp", ".cu", ".cuh")
C_HEADERS = ("include/cosmati.h", "include/cosmati/c/")  # they must also compile as C

# Permitted includes: folder -> the folders that its files may include (docs/architecture.md). None: no limit.
CORE = {"include/cosmati/core"}
ARCH = CORE | {"include/cosmati/arch"}
TILE = ARCH | {"include/cosmati/tile"}
GEMM = TILE | {"include/cosmati/gemm"}
CONV = GEMM | {"include/cosmati/conv"}
PRIMITIVE = ARCH | {"include/cosmati/primitive"}
NETWORK = PRIMITIVE | {"include/cosmati/network"}
EPILOGUE = CORE | {"include/cosmati/epilogue"}
OPS = EPILOGUE | {"include/cosmati/ops", "shared"}  # shared: see is_shared()
PLAN = OPS | {"src/program", "src/plan", "src/ops"}
MAY_INCLUDE = {
    "include": {"include/cosmati/c"},  # cosmati.h
    "include/cosmati/c": {"include/cosmati.h"},
    "include/cosmati/core": CORE,
    "include/cosmati/arch": ARCH,
    "include/cosmati/tile": TILE,
    "include/cosmati/gemm": GEMM,
    "include/cosmati/conv": CONV,
    "include/cosmati/primitive": PRIMITIVE,
    "include/cosmati/network": NETWORK,
    "include/cosmati/epilogue": EPILOGUE | {"include/cosmati/ops/error.h"},
    "include/cosmati/ops": OPS,
    "reference": OPS | {"reference"},
    "src/fmt": set(),
    "src/epilogue": OPS | {"src/epilogue", "src/ops"},
    "src/ops": OPS | {"src/ops", "src/backend"},
    "src/io": OPS | {"src/io", "src/ops"},
    "src/jit": OPS | {"src/jit", "src/io"},
    "src/program": OPS | {"src/program"},
    "src/candidates": PLAN | {"src/candidates", "src/backend", "reference"},
    "src/plan": PLAN | {"src/io"},
    "src/backend": PLAN | {"src/backend"},
    "src/backend/cuda": PLAN | {"src/backend", "src/jit"},
    "src/backend/emulator": PLAN | CONV | NETWORK | {"src/backend", "reference"},
    "src/c_api": OPS | {"include/cosmati.h", "src/c_api", "src/io", "src/ops"},
    "src/parallel": OPS | {"src/parallel", "src/ops", "src/backend/cuda/driver"},
    "nets": OPS | {"nets", "src/io", "src/ops", "src/backend/cpu/runtime", "src/parallel"},
    "cli": None,
    "tests": None,
    "bench": None,
    "examples": None,
    "tools": None,
    "python": {"include/cosmati.h", "python"},
}
# Folders whose files reach none of the others through any header.
APART = {"src/program": ("src/plan", "src/candidates", "src/backend"), "src/plan": ("src/candidates", "src/backend")}
STANDARD_LIBRARY_FREE = tuple("include/cosmati/" + folder for folder in ("core", "arch", "tile", "gemm", "conv", "primitive", "network"))  # device headers
BUILT = ("src/", "nets/", "reference/", "cli/")  # by g++ with all warnings
# Includes that the precompiled headers (cmake/precompiled.cmake) would hide: a file that uses these names must include
# the header, directly or through one of our headers.
PRECOMPILED = {
    "algorithm": r"std::(?:ranges::)?(?:max|min|sort|find_if|find|any_of|all_of|none_of|fill|fill_n|copy|copy_n|clamp|transform|count|count_if|equal"
                 r"|reverse|stable_sort|lower_bound|upper_bound|min_element|max_element|replace|remove_if|unique|search|rotate|nth_element)\(",
    "array": r"std::array\b",
    "cmath": r"std::(?:sqrt|exp|log|log2|pow|fabs|isnan|isfinite|isinf|ldexp|frexp|floor|ceil|tanh|erf|fma|nearbyint|round|lround|cos|sin|trunc|hypot)\(",
    "functional": r"std::(?:function\b|plus<|less<|hash<|multiplies<|reference_wrapper)",
    "map": r"std::(?:multi)?map<",
    "memory": r"std::(?:unique_ptr|shared_ptr|make_unique|make_shared|weak_ptr|addressof)\b",
    "optional": r"std::(?:optional\b|nullopt)",
    "span": r"std::span\b",
    "string": r"std::(?:string\b|to_string|stoi|getline)",
    "utility": r"std::(?:move|forward|pair|swap|exchange|make_pair|index_sequence)\b",
    "vector": r"std::vector\b",
    "fmt/format.h": r"fmt::(?:format|join|print|memory_buffer|format_to|runtime)\b",
}
# Only this table may compare compute capabilities.
CAPABILITY_TABLE = "src/ops/architecture.cpp"
CAPABILITY = r"(?:\.|->)(?:major|minor)\s*(?:[<>]=?|[=!]=)|10 \* (?:\w+(?:\.|->))+major|\bcapability\w*\s*(?:[<>]=?|[=!]=)\s*\d"
ONLY_IN = {"dnnl.hpp": "src/backend/cpu/onednn", "dnnl.h": "src/backend/cpu/onednn",
           "boost/context/fiber.hpp": "src/backend/emulator", "mpi.h": "src/parallel/mpi"}


def files(endings=CODE):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout.split("\n")
    return sorted(f for f in listed if f.endswith(endings) and os.path.exists(os.path.join(ROOT, f)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def resolve(name):
    """Returns the project's file that #include "name" refers to, or None."""
    for base in ("include", ""):
        path = os.path.join(base, name)
        if os.path.exists(os.path.join(ROOT, path)):
            return path
    return None


def first_include(path):
    """Returns the first header of this project that a file includes, or None."""
    first = re.search(r'^\s*#\s*include\s+(\S+)', read(path), re.MULTILINE)
    return resolve(first[1].strip('"')) if first and first[1].startswith('"') else None


def code_of(path):
    return re.sub(r"//.*", "", read(path))


def is_shared(path, known):
    """Whether the host may include a device header: it defines types that a launch passes to a kernel, or it is plain data and arithmetic,
    without device functions; in both cases it does not use thread indices."""
    if not path.startswith(STANDARD_LIBRARY_FREE) or "include/cosmati/arch/thread.h" in reached(path, known):
        return False
    passed = re.search(r"struct (?:alignas\(\d+\) )?(?:\w+(?:Arguments|Parameters)|TensorMap|TiledTensor)\b[^;]*\{", code_of(path))
    computes = path.startswith("include/cosmati/arch/") or re.search(r"COSMATI_(?:DEVICE|KERNEL|CLUSTER_KERNEL)\b", code_of(path))
    return bool(passed or not computes)


def check_includes():
    known = {}
    for path in files():
        rule = max((r for r in MAY_INCLUDE if path.startswith(r + "/")), key=len, default=None)
        if rule is None:
            yield f"{path}: is not in a folder that tools/check.py knows"
            continue
        for kind, name in re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', read(path), re.MULTILINE):
            home = ONLY_IN.get(name)
            if home:
                if not path.startswith((home, "bench/", "tests/")):
                    yield f"{path}: includes {name}, which only {home} may"
                continue
            if kind == "<":
                if path.startswith(STANDARD_LIBRARY_FREE):
                    yield f"{path}: includes <{name}>; device headers include nothing but our own"
                continue
            target = resolve(name)
            if target is None:
                yield f'{path}: "{name}" is not a path from include/ or the top folder'
            elif MAY_INCLUDE[rule] is not None and not target.startswith(tuple(MAY_INCLUDE[rule])) and not (
                    "shared" in MAY_INCLUDE[rule] and is_shared(target, known)):
                yield f"{path}: includes {target}; {rule}/ may include {', '.join(sorted(MAY_INCLUDE[rule]))}"
        for folder in APART.get(rule, ()):
            yield from (f"{path}: reaches {other}; no file in {rule}/ may" for other in sorted(reached(path, known)) if other.startswith(folder))
    yield from check_standard_headers(known)
    yield from check_capabilities()


def check_capabilities():
    """Only the table compares compute capabilities; other code uses features_of() and the rates."""
    for path in files((".h", ".cpp")):
        if not path.startswith((*BUILT, "include/")) or path == CAPABILITY_TABLE:
            continue
        for number, line in enumerate(read(path).split("\n"), 1):
            found = re.search(CAPABILITY, line.split("//")[0])
            if found:
                yield f"{path}:{number}: '{found[0]}' compares a compute capability; only {CAPABILITY_TABLE} may"


def reached(path, known):
    """Returns everything that a file includes, directly or through our headers: paths of our headers, names of those of the standard library and fmt."""
    if path not in known:
        known[path] = set()
        for kind, name in re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', read(path), re.MULTILINE):
            target = resolve(name) if kind == '"' else None
            known[path] |= {target} | reached(target, known) if target else {name}
    return known[path]


def check_standard_headers(known):
    for path in files((".h", ".cpp")):
        if not path.startswith((*BUILT, "include/")) or path.startswith(STANDARD_LIBRARY_FREE):
            continue
        text = code_of(path)
        for header, names in PRECOMPILED.items():
            used = re.search(names, text)
            if used and header not in reached(path, known):
                yield f"{path}: uses {used[0].rstrip('(<')} and does not include <{header}>"


def check_lengths():
    for path in files(CODE + (".py", ".sh")):
        lines = read(path).count("\n")
        if lines > 500:
            yield f"{path}: {lines} lines; at most 500"
        if path.endswith(CODE) and not read(path).lstrip().startswith(("//", "/*")):
            yield f"{path}: does not begin with a comment that describes it"
    folders = collections.Counter(os.path.dirname(path) for path in files(("",)))
    yield from (f"{folder}: {count} files side by side; at most 40" for folder, count in folders.items() if count > 40)


def check_headers(compiler):
    """Every header compiles alone. The build checks this for headers that a source file includes first, except for the
    precompiled headers: check_standard_headers."""
    warnings = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
    warnings += ["-isystem", sysconfig.get_path("include")]  # for those in python/
    headers = files((".h",))
    built = {first_include(f) for f in files((".cpp",)) if f.startswith(BUILT)}
    yield from (f"{f}: has no #pragma once" for f in built & set(headers) if "\n#pragma once\n" not in read(f))
    yield from compile_each([f for f in headers if f not in built], compiler, [*warnings, "-x", "c++", "-"])
    public = [f for f in headers if f.startswith("include/")]
    yield from compile_each([public, public[::-1]], compiler, [*warnings, "-x", "c++", "-"])
    yield from compile_each([f for f in headers if f.startswith(C_HEADERS)], compiler, [*warnings, "-x", "c", "-"], "c11")
    yield from compile_each([f for f in headers if f.startswith(C_HEADERS)], compiler, [*warnings, "-x", "c++", "-"], "c++11")


def check_device_headers(compiler):
    """Headers for device code compile for the GPU, all in one file, in both orders and without relaxed constexpr
    (each alone by NVRTC: CompileTest.EveryEmbeddedHeaderCompilesAlone)."""
    headers = [f for f in files((".h",)) if f.startswith(STANDARD_LIBRARY_FREE)]
    options = ["-gencode=arch=compute_90a,code=sm_90a", "-Werror", "all-warnings", "-o", "/dev/null", "-c", "-x", "cu", "-"]
    yield from compile_each([headers, headers[::-1]], compiler, options)


def compile_each(headers, compiler, options, standard="c++20"):
    """Compiles a file for each header, or for each list of headers, that includes it twice."""
    def compile_alone(path):
        command = [compiler, f"-std={standard}", f"-I{ROOT}", f"-I{ROOT}/include", *options]
        text = "".join(f'#include "{one}"\n' for one in ([path, path] if isinstance(path, str) else path))
        result = subprocess.run(command, input=text, text=True, capture_output=True)
        name = path if isinstance(path, str) else "all in one file"
        return f"{name}: does not compile with {compiler} as {standard}:\n{result.stderr[:2000]}" if result.returncode else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compile_alone, headers))


def check_format():
    found = [f for f in files()]
    result = subprocess.run(["clang-format", "--dry-run", "--Werror", *found], cwd=ROOT, text=True, capture_output=True)
    yield from (line for line in result.stderr.split("\n") if "error:" in line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=["includes", "lengths", "headers", "device-headers", "format"])
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()
    check = globals()["check_" + arguments.check.replace("-", "_")]
    findings = list(check(arguments.compiler) if "headers" in arguments.check else check())
    print("\n".join(findings) or f"{arguments.check}: nothing found in {len(files())} files")
    sys.exit(1 if findings else 0)


main()
