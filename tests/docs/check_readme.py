#!/usr/bin/python3
"""Checks README.md: the options of its commands exist, its example of an error is what the program prints, and its CUDA function
compiles as printed, by nvcc if available, and as C++ for the emulator, where it runs. (Its C++ program: tests/install.)

usage: check_readme.py PROGRAM COMPILER LIBRARY_FOLDER [NVCC]     exit status 1 and a line for what is not so
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import snippets  # noqa: E402

PROGRAM, COMPILER, LIBRARY, *NVCC = sys.argv[1:]
MAIN = """
#include <cstdio>
int main() {
  constexpr int m = 68, n = 36, k = 20;
  alignas(16) static float a[m * k], b[k * n], d[m * n];
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 5 - 2);
  if (static_cast<int>(multiply(m, n, k, a, b, d)) != 0) return 2;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i + l * m] * b[l + j * k];
      if (d[i + j * m] != sum) return 1;
    }
  std::puts("right");
}
"""


def call(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def commands():
    """Returns the arguments of each command with the program in README.md, from its verb on."""
    block = snippets.program("README.md", "sh", "C=build/release/bin/cosmati")
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if "$C" in words:
            yield words[words.index("$C") + 1:]


def check_options():
    """Checks that --help of the verb, with its subject if any, names each option."""
    wrong, count = [], 0
    for words in commands():
        subject = [word for word in words[1:2] if re.fullmatch(r"[a-z][a-z0-9]*", word)]
        shown = call(PROGRAM, words[0], *subject, "--help")
        if shown.returncode != 0:
            wrong.append(f"cosmati {words[0]} {' '.join(subject)}: {shown.stderr}")
        for option in (word for word in words if word.startswith("--")):
            count += 1
            if not re.search(rf"{option}\b", shown.stdout):
                wrong.append(f"cosmati {' '.join(words)}: --help has no {option}")
    if count < 30:
        wrong.append(f"only {count} options were found in README.md")
    return wrong


def check_error(folder):
    """Checks the example of an invalid request."""
    block = [text for text in snippets.blocks("README.md", "") if text.startswith("$ cosmati run gemm")]
    if len(block) != 1:
        return ["README.md has no example of a wrong request"]
    command, *expected = block[0].splitlines()
    for name, shape in (("a", (4, 3)), ("b", (3, 5)), ("bias", (5,))):
        np.save(os.path.join(folder, name + ".npy"), np.zeros(shape, np.float32))
    told = call(PROGRAM, *shlex.split(command)[2:], cwd=folder)
    if told.returncode != 2 or told.stderr.splitlines() != expected:
        return [f"{command}\nprints, with status {told.returncode},\n{told.stderr}"]
    return []


def check_cuda(folder):
    """Compiles and runs the function of a CUDA program."""
    include = "-I" + os.path.join(snippets.ROOT, "include")
    text = snippets.program("README.md", "cuda", "launch_gemm")
    source, program = os.path.join(folder, "multiply.cu"), os.path.join(folder, "multiply")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    host = os.path.join(folder, "multiply.cpp")
    with open(host, "w", encoding="utf-8") as file:
        file.write(text + MAIN)
    built = call(COMPILER, "-std=c++20", "-O1", "-DcudaError_t=cosmati::LaunchStatus", include, host, "-o", program, f"-L{LIBRARY}",
                 "-lcosmati", f"-Wl,-rpath,{LIBRARY}")
    if built.returncode != 0:
        return [f"README.md's CUDA function as C++: {built.stderr}"]
    ran = call(program)
    wrong = [] if ran.stdout == "right\n" else [f"README.md's CUDA function in the emulator: status {ran.returncode} {ran.stderr}"]
    if not NVCC:
        print("SKIPPED: there is no nvcc here; the CUDA function was compiled as C++")
        return wrong
    flags = re.search(r"// nvcc (.*)", text).group(1).replace("-Iinclude", include).split()
    built = call(NVCC[0], *flags, "-c", source, "-o", os.path.join(folder, "multiply.o"))
    return wrong + ([f"README.md's CUDA function: {built.stderr}"] if built.returncode != 0 else [])


with tempfile.TemporaryDirectory() as work:
    findings = check_options() + check_error(work) + check_cuda(work)
print("\n".join(findings) or "README.md: as it says")
sys.exit(1 if findings else 0)
