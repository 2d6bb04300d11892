"""Bad files and misplaced options for find, tune, replay, plot and suites: one sentence each, no hangs, inputs unchanged. usage: check_measuring.py PROGRAM"""
import os, re, subprocess, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "cpu")
short = ["--slices", 1, "--slice-seconds", "0.001"]
find = ["find", "gemm", "--backend", "cpu", "--seconds", "0.001"]


def write(name, data):
    with open(program.file(name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return program.file(name)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def refused(*words, tells=(), **environment):
    """Expects exit status 2 within seconds and one line on stderr that contains these words and no control characters."""
    try:
        done = subprocess.run([program.path, *map(str, words)], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return program.check(False, f"{words}: hangs")
    said = done.stderr.decode(errors="replace")
    program.check(done.returncode == 2, f"{words}: exit {done.returncode}, not 2: {said[:300]!r}")
    program.check(said.count("\n") == 1 and said.startswith("cosmati: ") and len(said) < 20000, f"{words}: one sentence: {said[:300]!r}")
    program.check(not any(character < " " for character in said[:-1]), f"{words}: control characters: {said[:300]!r}")
    for word in tells:
        program.check(str(word) in said, f"{words}: {word!r} is not in {said[:300]!r}")


a = program.save("a", np.ones((8, 8), np.float32))
calls, results, tuning = program.file("calls.jsonl"), program.file("results.jsonl"), program.file("tuning.txt")
product = ["run", "gemm", "--a", a, "--b", a, "--backend", "cpu", "--out", program.file("d.npy")]
program.call(*product, COSMATI_RECORD=calls)
program.call("bench", "gemm", "--size", "8x8x8", "--backend", "cpu", *short, "--json", results)
said = program.call(*find, "--size", "8x8x8,9x8x7", "--out", tuning).stdout
program.check(re.search(r"^Regret \(.*\): median [0-9.]+, largest [0-9.]+ \((8x8x8|9x8x7) nn f32\), of 2 problems\.$", said, re.MULTILINE), f"find prints the regret: {said}")
refused(*find, "--size", "8x8x8", "--fail-above", "0.9", tells=["--fail-above 0.9"])

# Files with other content, truncated files, and non-files.
escape = "\x1b[31m"
recorded = read(calls).decode()
bad = [
    write("empty", ""), write("nul", b"\0" * 1000), write("bytes", bytes(range(128, 256)) * 20), write("long", "x" * 5_000_000 + "\n"), write("deep", "[" * 200_000 + "\n"),
    write(f"escape{escape}.jsonl", '{"verb": "bench", "subject": "\\u001b[2J"}\n'), write("half.jsonl", recorded[: len(recorded) // 2]),
    write("negative.jsonl", recorded.replace("8", "-8")), write("large.jsonl", recorded.replace("[1,8,8]", "[1,4000000000000,4000000000000]")),
    write("type.jsonl", recorded.replace('"f32"', '"\\u001b[31mf99"')), program.folder.name, program.file("missing"), program.file("empty/within"), "x" * 5000, a, "/dev/null", "-"]
os.symlink("loop", program.file("loop"))
bad.append(program.file("loop"))
untouched = {path: read(path) for path in bad if os.path.isfile(path)}
for path in bad:
    refused("replay", path, "--backend", "cpu")
    refused("replay", path, "--backend", "cpu", "--bench", *short)
    refused("plot", path, "--out", program.file("page.html"))
    refused(*find, "--shapes", path)
    refused("tune", "gemm", "--shapes", path, "--out", program.file("new.txt"))
    program.check(not os.path.exists(program.file("page.html")) and not os.path.exists(program.file("new.txt")), f"{path}: nothing was written")
for path in bad:
    if os.path.isfile(path) and read(path) and path != "/dev/null":
        refused(*find, "--size", "8x8x8", "--out", path)
    program.check(path not in untouched or read(path) == untouched[path], f"{path} is left alone")
os.mkfifo(program.file("pipe"))
refused(*find, "--size", "8x8x8", "--out", program.file("pipe"), tells=["regular file"])
refused("replay", calls, "--baking", tells=["--baking"])
for words in (["find", "gemm", "--size", "8x8x8"], ["tune", "gemm", "--size", "8x8x8"], ["plot", results]):
    refused(*words, "--baking", tells=["--baking"])

# Options that apply to all problems are not allowed in the line of one problem.
for option, verbs in {"--out t.txt": "find tune compile", "--json": "find tune bench verify explain compile", "--backend reference": "find tune bench verify explain", "--threads 1": "find bench verify",
                      "--seed 3": "tune bench verify compile", "--shapes x.txt": "find bench verify explain compile", "--count 3": "verify compile", "--fail-below 2": "bench", "--fail-above 2": "find tune", "--slices 1": "bench",
                      "--lines 1": "bench compile", "--digest": "bench", "--peer-log x": "bench", "--verify-below 3": "bench",
                      "--device-description h200": "find bench verify explain compile", "--arch sm_80": "compile", "--budget 3": "tune", "--data hard": "verify"}.items():
    suite = write("suite.txt", f"subject: gemm\nabout: one\n--size 8x8x8 {option}\n")
    for verb in verbs.split():
        out = ["--out", program.file("new.txt")] if verb == "tune" else []
        machine = ["--backend", "cpu"] if verb in ("find", "bench", "verify", "explain") else ["--arch", "sm_90a"] if verb == "compile" else []
        if verb == "tune":  # it requests a GPU first
            done = program.try_verb(verb, "gemm", "--shapes", suite, *out)
            program.check(done.returncode in (2, 3), f"tune {option}: {done.stderr[:200]}")
            continue
        refused(verb, "gemm", "--shapes", suite, *machine, tells=[option.split()[0], "on the command line"])
program.check(not os.path.exists(program.file("t.txt")) and not os.path.exists("t.txt"), "nothing was written for a line's --out")
suite = write("suite.txt", "subject: gemm\nabout: one\n--size 8x8x8 --type f64 --layout tn --misalign 8\n")
said = program.call("verify", "gemm", "--shapes", suite, "--backend", "cpu").stdout
program.check("misaligned by 8" in said and "f64" in said, f"a line's own options hold: {said}")

# The recording is not an input of the process that records.
before, array = read(calls), read(a)
same = program.file("same.jsonl")
os.symlink(calls, same)
for name in (calls, same):
    for mode in ([], ["--bench", *short]):
        refused("replay", calls, "--backend", "cpu", *mode, tells=["COSMATI_RECORD", "would overwrite an input"], COSMATI_RECORD=name)
refused(*product, tells=["COSMATI_RECORD", "--a"], COSMATI_RECORD=a)
refused("verify", "gemm", "--shapes", suite, "--backend", "cpu", tells=["COSMATI_RECORD", "--shapes"], COSMATI_RECORD=suite)
refused(*product, tells=["COSMATI_RECORD", "different files"], COSMATI_RECORD=program.file("d.npy"))
refused(*product, tells=["COSMATI_RECORD", "pipe"], COSMATI_RECORD=program.file("pipe"))
refused(*product, tells=["folder"], COSMATI_RECORD=program.folder.name)
program.check(read(calls) == before and read(a) == array, "inputs are left alone")
other = program.file("other.jsonl")
program.call("replay", calls, "--backend", "cpu", COSMATI_RECORD=other)
program.check(os.path.exists(other), "another file is written")

program.finish()
