#!/usr/bin/python3
"""Files that are not regular: '-' as every file's name, pipes and standard streams as inputs and outputs. Each works, or one
sentence says why not, with exit status 2; nothing hangs, and no file named '-' is created.

usage: check_streams.py COSMATI
"""
import os
import re
import subprocess
import sys
import tempfile
import threading

import numpy as np

COSMATI = os.path.abspath(sys.argv[1])
failures = []
checks = 0


def expect(what, condition, detail=""):
    global checks
    checks += 1
    if not condition:
        failures.append(what)
        print(f"FAIL {what}: {str(detail)[:600]}")


def call(*words, stdin=subprocess.DEVNULL, **options):
    if isinstance(stdin, bytes):
        options["input"] = stdin
    else:
        options["stdin"] = stdin
    return subprocess.run([COSMATI, *words], capture_output=True, timeout=60, **options)


def refused(what, done, words=""):
    """Expects exit status 2 and one sentence."""
    lines = done.stderr.decode().splitlines()
    expect(what, done.returncode == 2 and len(lines) == 1 and lines[0].startswith("cosmati: ") and words in lines[0],
           f"exit {done.returncode}: {done.stderr.decode()}")


def subcommands(*words):
    """Returns the subcommands that --help lists for a command."""
    text = call(*words, "--help").stdout.decode()
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE | re.IGNORECASE)
    return re.findall(r"^  ([^\s,]+)", listed.group(1), re.MULTILINE) if listed else []


def check_dashes():
    """Returns every option that takes a file, once per verb, since subjects share most of them."""
    count = 0
    for verb in subcommands():
        seen = set()
        for words in [[verb, subject] for subject in subcommands(verb)] or [[verb]]:
            text = call(*words, "--help").stdout.decode()
            for option, kind in re.findall(r"^  (--[a-z0-9-]+) (\S*(?:FILE|OUTPUT|PATH|DIR)\S*)", text, re.MULTILINE):
                if option in seen:
                    continue
                seen.add(option)
                count += 1
                value = "x=-" if "=" in kind else "-"
                needed = ["calls.jsonl"] if verb == "replay" else []  # a file of its own
                refused(f"{' '.join(words)} {option} {value}", call(*words, *needed, option, value), f"{option} {value}: '-' is not accepted as a file")
    expect("options with files were found in the help", count > 60, count)


def check_pipes():
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones((4, 5), np.float32)
    np.save("a.npy", a)
    np.save("b.npy", b)
    with open("a.npy", "rb") as file:
        bytes_of_a = file.read()
    product = ["run", "gemm", "--backend", "reference", "--b", "b.npy"]
    # Arrays are not read sequentially, so pipes are rejected.
    refused("an array from a pipe", call(*product, "--a", "/dev/stdin", "--out", "d.npy", stdin=bytes_of_a), "/dev/stdin: is a pipe")
    os.mkfifo("fifo")
    refused("an array from a FIFO that nobody writes", call(*product, "--a", "fifo", "--out", "d.npy"), "fifo: is a pipe")
    refused("an array from a device", call(*product, "--a", "/dev/null", "--out", "d.npy"), "/dev/null: is a pipe")
    expect("nothing was written", not os.path.exists("d.npy"))
    with open("a.npy", "rb") as file:
        done = call(*product, "--a", "/dev/stdin", "--out", "d.npy", stdin=file)
    expect("a regular file as standard input", done.returncode == 0 and np.array_equal(np.load("d.npy"), a @ b), done.stderr)
    # Outputs are written sequentially, so pipes work; messages go to stderr.
    done = call(*product, "--a", "a.npy", "--out", "/dev/stdout")
    with open("d.npy", "rb") as file:
        expect("--out /dev/stdout in a pipe", done.returncode == 0 and done.stdout == file.read(), done.stderr)
    got = []
    reader = threading.Thread(target=lambda: got.append(open("fifo", "rb").read()))
    reader.start()
    done = call(*product, "--a", "a.npy", "--out", "fifo")
    reader.join()
    expect("--out to a FIFO", done.returncode == 0 and got == [open("d.npy", "rb").read()], done.stderr)
    # Text is read sequentially, so pipes work.
    done = call("verify", "gemm", "--backend", "reference", "--shapes", "/dev/stdin", stdin=b"subject: gemm\n--size 5x6x7\n")
    expect("--shapes from a pipe", done.returncode == 0 and b"5x6x7" in done.stdout, done.stderr)
    records = call("bench", "gemm", "--backend", "reference", "--size", "8x8x8", "--slices", "1", "--slice-seconds", "0.001", "--json")
    done = call("plot", "/dev/stdin", "--out", "/dev/stdout", stdin=records.stdout)
    expect("plot from a pipe to a pipe", done.returncode == 0 and b"<html" in done.stdout, done.stderr)
    done = call("bench", "gemm", "--backend", "reference", "--size", "8x8x8", "--slices", "1", "--slice-seconds", "0.001", "--json",
                "/dev/stdout")
    expect("bench --json /dev/stdout", done.returncode == 0 and b'"problem":"8x8x8 nn"' in done.stdout, done.stderr)


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    check_dashes()
    check_pipes()
    expect("no file is named -", not os.path.exists("-"))
    os.chdir("/")
print(f"{checks} checks, {len(failures)} failures")
sys.exit(1 if failures else 0)
