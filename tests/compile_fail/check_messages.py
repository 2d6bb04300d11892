#!/usr/bin/python3
"""Compiles every file of this folder and its subfolders; each must be rejected with the expected sentence.

usage: check_messages.py COMPILER [--only NAME] [--show]     exit status 1 and a line for each finding

The first lines of a file give the expected first error, and a type that must be named next to it, because
its name contains the numbers:
  // expect: block_m must be a multiple of warp_m      ("nothing": the file compiles)
  // names: BlockMOverWarpM<128, 48>                   (not with nvcc, which formats it differently)
Files that end with .cu are for nvcc alone.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
MOST_LINES = 20  # the distance between the sentence and the type, in lines


def compile_file(compiler, path):
    command = [compiler, "-std=c++20", f"-I{ROOT}", f"-I{ROOT}/include"]
    if is_nvcc(compiler):
        command += ["-x", "cu", "-gencode=arch=compute_90a,code=sm_90a", "-cubin", "-o", os.devnull]
    else:
        command += ["-fsyntax-only", "-x", "c++"]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run([*command, path], capture_output=True, text=True, env=environment)


def is_nvcc(compiler):
    return "nvcc" in os.path.basename(compiler)


def directive(text, name):
    found = re.search(rf"^// {name}: (.*)$", text, re.MULTILINE)
    return found and found[1].strip()


def finding(compiler, path, show):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    expected, names = directive(text, "expect"), directive(text, "names")
    name = os.path.basename(path)
    if not expected:
        return f"{name}: has no line '// expect: MESSAGE'"
    result = compile_file(compiler, path)
    output = (result.stderr + result.stdout).strip()
    if show:
        print(f"== {name}\n{output}\n")
    if expected == "nothing":
        return f"{name}: does not compile:\n{output}" if result.returncode else None
    if result.returncode == 0:
        return f"{name}: compiles, but is wrong: {expected}"
    lines = output.split("\n")
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b", line)), None)
    if first is None:
        return f"{name}: failed without an error:\n{output}"
    # nvcc breaks long sentences; no other compiler does.
    said = " ".join(" ".join(lines[first:first + 2]).split())
    if expected not in said:
        return f"{name}: the first error is not '{expected}':\n{lines[first]}"
    if first >= MOST_LINES:
        return f"{name}: the sentence is line {first + 1} of the output"
    if names and not is_nvcc(compiler) and names not in "\n".join(lines[:first + MOST_LINES]):
        return f"{name}: '{names}' does not stand near the first error:\n" + "\n".join(lines[:first + MOST_LINES])
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("compiler")
    parser.add_argument("--only", default="*", help="one file, without its ending")
    parser.add_argument("--show", action="store_true", help="print all that the compiler says")
    arguments = parser.parse_args()
    endings = ("cpp", "cu") if is_nvcc(arguments.compiler) else ("cpp",)
    paths = sorted(p for e in endings for p in glob.glob(os.path.join(FOLDER, "**", f"{arguments.only}.{e}"), recursive=True))
    with concurrent.futures.ThreadPoolExecutor(1 if arguments.show else os.cpu_count()) as pool:
        findings = [f for f in pool.map(lambda p: finding(arguments.compiler, p, arguments.show), paths) if f]
    print("\n".join(findings) or f"{len(paths)} files say what they must")
    sys.exit(1 if findings or not paths else 0)


main()
