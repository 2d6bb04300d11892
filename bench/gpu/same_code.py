#!/usr/bin/env python3
"""Keeps measurements whose kernels have a new text but the same machine code: gives them the new digests.

usage: same_code.py OLD NEW DEVICE.txt RESULTS.jsonl     OLD, NEW: programs of two builds, on a machine with NVRTC

A row of bench/gpu/table.txt is kept if it is current for OLD, NEW plans every problem of it alike, and both compile all its kernels to the same
machine code. Its lines then also record the digest that was measured, as `measured_digest`. Prints the rows that are to be measured again.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

import rows

ARCHITECTURE = "sm_90a"


def image(path):
    """Returns the machine code of an entry of the kernel cache (src/jit/entry.h)."""
    with open(path, "rb") as file:
        data = file.read()
    place = 12  # after the magic and the version
    for _ in range(2):  # the key, the image
        (size,) = struct.unpack_from("<Q", data, place)
        place += 8 + size
    return data[place - size:place]


def codes(program, row, device):
    """Returns the digests of the machine code of the row's kernels; None if one does not compile."""
    words = rows.TIMING.sub("", row.words).split()
    with tempfile.TemporaryDirectory() as cache:
        answer = subprocess.run([program, "compile", *words, "--device-description", device, "--arch", ARCHITECTURE, "--cache", cache],
                                capture_output=True, text=True)
        if answer.returncode != 0:
            return None
        return {hashlib.sha256(image(os.path.join(cache, name))).hexdigest() for name in os.listdir(cache) if name.endswith(".kernel")}


def plans(program, table, device):
    answer = subprocess.run([program, "bench", "table", "--file", table, "--digest", "--backend", "cuda", "--device-description", device],
                            capture_output=True, text=True)
    return rows.by_command([json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")])


def is_same(old, new, before, after, row, device):
    alike = [[(line["problem"], line["kernel"], line["policy"]) for line in lines] for lines in (before, after)]
    if not before or alike[0] != alike[1]:
        return False
    compiled = codes(old, row, device)
    return bool(compiled) and compiled == codes(new, row, device)


def main():
    old, new, device, path = sys.argv[1:]
    results = rows.by_command(rows.json_lines(path))
    table = rows.read()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(rows.text(table))
        file.flush()
        before, after = (plans(program, file.name, device) for program in (old, new))
    stale = [row for row in table if results[rows.command(row)] and not rows.is_whole(results[rows.command(row)], after[rows.command(row)])]
    known = [row for row in stale if rows.is_whole(results[rows.command(row)], before[rows.command(row)])]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        same = list(pool.map(lambda row: is_same(old, new, before[rows.command(row)], after[rows.command(row)], row, device), known))
    kept = [row for row, is_kept in zip(known, same) if is_kept]
    for row in kept:
        command = rows.command(row)
        replaced = collections.defaultdict(list)
        for line, now in zip(before[command], after[command]):
            replaced[line["digest"], line["problem"]].append(now["digest"])
        for line in results[command]:
            now = replaced.get((line["digest"], line["problem"]))
            if now and now[0] != line["digest"]:
                line["measured_digest"], line["digest"] = line.get("measured_digest", line["digest"]), now[0]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for group in results.values() for line in group)
    os.replace(path + ".new", path)
    print(f"{len(kept)} of {len(stale)} rows with new digests have the same machine code; to be measured:")
    print(rows.text(row for row in stale if row not in kept), end="")


if __name__ == "__main__":
    main()
