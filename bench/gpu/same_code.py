#!/usr/bin/env python3
"""Keeps measurements whose kernels have a new text but the same machine code: gives them the new digests.

usage: same_code.py OLD NEW DEVICE.txt RESULTS.jsonl     OLD, NEW: programs of two builds, on a machine with NVRTC

A row of bench/gpu/table.txt is kept if it is current for OLD, NEW plans every problem of it alike, and both compile all its kernels to the same
machine code. Its lines then also record the digest that was measured, as `measured_digest`. Prints the rows that are to be measured again.
"""
import concurrent.futures
import os
import re
import struct
import subprocess
import sys
import tempfile

import rows

ARCHITECTURE = "sm_90a"
SYMBOLS = 2  # the kind of a section


def image(path):
    """Returns the machine code of an entry of the kernel cache (src/jit/entry.h)."""
    with open(path, "rb") as file:
        data = file.read()
    place = 12  # after the magic and the version
    for _ in range(2):  # the key, the image
        (size,) = struct.unpack_from("<Q", data, place)
        place += 8 + size
    return data[place - size:place]


def machine_code(cubin):
    """Returns the instructions and constants of an ELF file, and its static members by name. Additional members without use change only the
    order of their addresses, which is left out (bank 4)."""
    (table,), (size, count, names) = struct.unpack_from("<Q", cubin, 40), struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQII", cubin, table + i * size) for i in range(count)]

    def text(place):
        return cubin[place:cubin.index(b"\0", place)]
    code, members = [], {}
    for name, kind, _, _, place, length, link, _ in sections:
        if re.match(rb"\.text\.|\.nv\.constant[0-35-9]", text(sections[names][4] + name)):
            code.append(cubin[place:place + length])
        elif kind == SYMBOLS:
            for at in range(place, place + length, 24):
                symbol, _, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", cubin, at)
                if 0 < section < count and text(sections[names][4] + sections[section][0]) == b".nv.global.init":
                    begin = sections[section][4] + value
                    members[text(sections[link][4] + symbol)] = cubin[begin:begin + bytes_]
    assert code, "no sections of code"
    return sorted(code), members


def is_same_code(before, after):
    """Whether two kernels, as returned by machine_code(), differ at most in static members that only one of them has."""
    return before[0] == after[0] and all(after[1].get(name, value) == value for name, value in before[1].items())


def codes(program, row, device):
    """Returns the machine code of the row's kernels, sorted; None if one does not compile."""
    words = rows.TIMING.sub("", row.words).split()
    with tempfile.TemporaryDirectory() as cache:
        answer = subprocess.run([program, "compile", *words, "--device-description", device, "--arch", ARCHITECTURE, "--cache", cache],
                                capture_output=True, text=True)
        if answer.returncode != 0:
            return None
        return sorted((machine_code(image(os.path.join(cache, name))) for name in os.listdir(cache) if name.endswith(".kernel")),
                      key=lambda one: one[0])


def is_same(old, new, before, after, row, device):
    alike = [[(line["problem"], line["kernel"], line["policy"]) for line in lines] for lines in (before, after)]
    if not before or alike[0] != alike[1]:
        return False
    measured = codes(old, row, device)
    compiled = codes(new, row, device) if measured else None
    return bool(compiled) and len(compiled) == len(measured) and all(map(is_same_code, measured, compiled))


def main():
    old, new, device, path = sys.argv[1:]
    results = rows.by_command(rows.json_lines(path))
    table = [row for row in rows.read() if results[rows.command(row)]]
    before, after = (rows.digests(program, device, [rows.command(row) for row in table]) for program in (old, new))

    def is_current(row, digests):
        return rows.is_whole(results[rows.command(row)], digests[rows.command(row)])

    def is_kept(row):
        command = rows.command(row)
        return is_current(row, before) and is_same(old, new, before[command], after[command], row, device)
    stale = [row for row in table if not is_current(row, after)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        kept = [row for row, keep in zip(stale, pool.map(is_kept, stale)) if keep]
    for command in map(rows.command, kept):
        now = {(line["digest"], line["problem"]): same["digest"] for line, same in zip(before[command], after[command])}
        for line in results[command]:
            digest = now.get((line["digest"], line["problem"]), line["digest"])
            if digest != line["digest"]:
                line["measured_digest"], line["digest"] = line.get("measured_digest", line["digest"]), digest
    rows.write(path, results)
    print(f"{len(kept)} of {len(stale)} rows with new digests have the same machine code; to be measured:")
    print(rows.text(row for row in stale if row not in kept), end="")


if __name__ == "__main__":
    main()
