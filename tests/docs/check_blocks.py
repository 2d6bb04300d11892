#!/usr/bin/python3
"""Runs the code blocks of README.md, CONTRIBUTING.md, examples/README.md and docs/ (without decisions/, which are not updated).

usage: check_blocks.py PROGRAM COMPILER LIBRARY_FOLDER [NVCC]     exit status 1 and a line for each difference

  sh         run by bash, the blocks of a page one after the other in a folder with a.npy, b.npy and bias.npy; `<!-- blocks: options -->` above a block: only the verbs and
             options of `cosmati` are looked up in --help; `<!-- blocks: emulator -->`: run where the emulator's kernels are built
  console    each `$ ` line is run, and prints what follows, on stdout or stderr
  c, cpp     a program is compiled, linked and run; what has no main is compiled as the body of a function
  cuda       compiled by nvcc where there is one, and as C++ for the emulator, where README.md's block is also run
  python     run by Debian's python3, or by the Python of COSMATI_PYTHON where that has what the block imports; skipped where neither has
The options of `cosmati VERB SUBJECT ...` between backquotes are looked up in --help.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import snippets  # noqa: E402

PROGRAM, COMPILER, LIBRARY, *NVCC = (os.path.abspath(word) if os.path.exists(word) else word for word in sys.argv[1:])
INCLUDE = "-I" + os.path.join(snippets.ROOT, "include")
LINK = [f"-L{LIBRARY}", "-lcosmati", f"-Wl,-rpath,{LIBRARY}"]
IGNORED = {"", "text", "cmake"}
# What C snippets use of the CUDA runtime and of the program around them.
AROUND_C = """#include <cosmati.h>
typedef void* cudaStream_t; typedef void* cudaGraph_t; enum { cudaStreamCaptureModeThreadLocal };
int cudaStreamBeginCapture(cudaStream_t stream, int mode); int cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
void snippet(cudaStream_t stream, cudaGraph_t graph, cosmati_plan_t plan, cosmati_argument const* arguments, size_t count, void* workspace, size_t bytes);
void snippet(cudaStream_t stream, cudaGraph_t graph, cosmati_plan_t plan, cosmati_argument const* arguments, size_t count, void* workspace, size_t bytes) {
"""
MULTIPLY = """
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
}
"""
with open(os.path.join(snippets.ROOT, "Makefile"), encoding="utf-8") as makefile:
    TARGETS = re.findall(r"^(\w+):", makefile.read(), re.MULTILINE)
helps = {}


def call(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def told(done, what):
    return [] if done.returncode == 0 else [f"{what}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"]


def help_of(*words):
    if words not in helps:
        helps[words] = call(PROGRAM, *words, "--help")
    return helps[words]


def check_options(text):
    """Checks that --help of the verb, with its subject if it has one, lists each option."""
    wrong = [f"the Makefile has no target {target}" for target in re.findall(r"^make (\w+)", text, re.MULTILINE) if target not in TARGETS]
    for line in text.replace("\\\n", " ").splitlines():
        if not re.search(r"(^|[ /])(\$C|cosmati) ", line):
            continue
        words = words_of(line)
        begin = next((i for i, word in enumerate(words) if word in ("$C", "cosmati")), None)
        if begin is None:
            continue
        words = words[begin + 1:]
        end = next((i for i, word in enumerate(words) if word in ("|", "&&", ";", ">", "...")), len(words))
        subject = [word for word in words[1:2] if re.fullmatch(r"[a-z][a-z0-9-]*", word)]
        shown = help_of(words[0], *subject)
        wrong += told(shown, f"cosmati {' '.join(words[:2])} --help")
        wrong += [f"cosmati {' '.join(words[:end])}: --help has no {word}" for word in words[:end]
                  if word.startswith("--") and not re.search(rf"{word}(?![\w-])", shown.stdout)]
    return wrong


def words_of(line):
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    return list(lexer)


def check_inline(text):
    """Checks the options of commands within sentences and tables: `cosmati VERB SUBJECT --option`."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [one for command in re.findall(r"`([^`\n]*\bcosmati [a-z]+ [a-z][a-z0-9-]* [^`\n]*)`", outside) for one in check_options(command)]


def run_console(text, folder, environment):
    wrong = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if [line.rstrip() for line in done.stdout.splitlines()] != [line.rstrip() for line in expected.splitlines()]:
            wrong.append(f"$ {command}\nprints\n{done.stdout}")
    return wrong


def compile_and_run(text, language, folder):
    compiler = ["cc", "-std=c11"] if language == "c" else [COMPILER, "-std=c++20"]
    source, program = os.path.join(folder, f"block.{language}"), os.path.join(folder, "block")
    whole = "int main" in text
    with open(source, "w", encoding="utf-8") as file:
        file.write(text if whole else f"{AROUND_C}{text}}}\n")
    if not whole:
        return told(call(*compiler, INCLUDE, "-c", source, "-o", program), "compiled as the body of a function")
    wrong = told(call(*compiler, "-Wall", "-Wextra", "-Werror", INCLUDE, source, "-o", program, *LINK), "compiled")
    return wrong or told(call(program), "run")


def compile_cuda(text, folder):
    source, host = os.path.join(folder, "block.cu"), os.path.join(folder, "block_cu.cpp")
    runs = "multiply(" in text
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    with open(host, "w", encoding="utf-8") as file:
        file.write(text + (MULTIPLY if runs else "int main() { return layer == nullptr; }\n"))
    program = os.path.join(folder, "block_cu")
    wrong = told(call(COMPILER, "-std=c++20", "-O1", "-DcudaError_t=cosmati::LaunchStatus", INCLUDE, host, "-o", program, *LINK), "compiled as C++")
    wrong = wrong or told(call(program), "in the emulator")
    if not NVCC:
        print("SKIPPED: there is no nvcc here; CUDA blocks were compiled as C++")
        return wrong
    flags = re.search(r"nvcc (.*)", text)[1].replace("-Iinclude", INCLUDE).split()
    return wrong + told(call(NVCC[0], *flags, "-c", source, "-o", os.path.join(folder, "block.o")), "compiled by nvcc")


def run_python(text, folder, environment):
    needed = set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
    probe = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))"
    for python in filter(None, ("/usr/bin/python3", os.environ.get("COSMATI_PYTHON"))):
        if call(python, "-c", probe, *needed, env=environment).returncode == 0:
            return told(call(python, "-c", text, cwd=folder, env=environment), "run")
    print(f"SKIPPED: a Python block needs {', '.join(sorted(needed))}; COSMATI_PYTHON may name a Python that has it")
    return []


def run_block(language, mark, text, folder, environment):
    if language == "sh" and mark == "emulator" and not os.path.exists(os.path.join(LIBRARY, "libcosmati_emulator.so")):
        print("SKIPPED: libcosmati_emulator.so is not built")
        return check_options(text)
    if language == "sh" and mark == "options":
        return check_options(text)
    if language == "sh":
        return check_options(text) + told(call("bash", "-euo", "pipefail", "-c", text, cwd=folder, env=environment), "run")
    if language == "console":
        return run_console(text, folder, environment)
    if language in ("c", "cpp"):
        return compile_and_run(text, language, folder)
    if language == "cuda":
        return compile_cuda(text, folder)
    if language == "python":
        return run_python(text, folder, environment)
    return [] if language in IGNORED else [f"nothing is known of the language '{language}'"]


def check_page(page, counts):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, ".bin"))
        os.symlink(PROGRAM, os.path.join(folder, ".bin", "cosmati"))
        os.symlink("/usr/bin/python3", os.path.join(folder, ".bin", "python3"))
        for name, shape in (("a", (4, 3)), ("b", (3, 5)), ("bias", (5,))):
            numpy.save(os.path.join(folder, name + ".npy"), numpy.zeros(shape, numpy.float32))
        environment = dict(os.environ, PATH=f"{folder}/.bin:{os.environ['PATH']}", HOME=folder, XDG_CACHE_HOME=folder, OMP_WAIT_POLICY="passive")
        with open(os.path.join(snippets.ROOT, page), encoding="utf-8") as file:
            wrong += [f"{page}: {one}" for one in check_inline(file.read())]
        for line, language, mark, text in snippets.marked_blocks(page):
            counts[language] = counts.get(language, 0) + 1
            if (page, language) == ("docs/epilogue.md", ""):
                wrong += check_epilogues(text, environment, f"{page}:{line}")
            wrong += [f"{page}:{line}: {one}" for one in run_block(language, mark, text, folder, environment)]
    return wrong


def check_epilogues(text, environment, where):
    """Checks that the examples of the language are accepted; the grammar is not an example."""
    examples = [] if " = " in text.splitlines()[0] else text.splitlines()
    return [f"{where}: {one}: {done.stderr}" for one in examples
            if (done := call(PROGRAM, "explain", "gemm", "--size", "8x8x8", "--epilogue", one, env=environment)).returncode != 0]


def main():
    pages = ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    pages += sorted(os.path.relpath(path, snippets.ROOT) for part in ("*.md", "start/*.md") for path in glob.glob(os.path.join(snippets.ROOT, "docs", part)))
    counts, wrong = {}, []
    for page in pages:
        wrong += check_page(page, counts)
    if counts.get("sh", 0) < 10 or counts.get("console", 0) < 2 or counts.get("c", 0) < 2:
        wrong.append(f"too few blocks were found: {counts}")
    print("\n".join(wrong) or f"as the pages say: {counts} in {len(pages)} pages")
    sys.exit(1 if wrong else 0)


main()
