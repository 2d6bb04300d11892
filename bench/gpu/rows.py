#!/usr/bin/env python3
"""Selects rows of bench/gpu/table.txt by whether they were measured; used by figures.sh and by bench/report.py.

usage: rows.py select TABLE [--all]               the table for `cosmati bench table`; --all: thinned rows without their --lines
       rows.py todo TABLE DIGESTS.jsonl RESULTS.jsonl    rows of such a table that RESULTS lacks; removes their outdated lines from RESULTS
       rows.py compile TABLE WORD...              the arguments of `cosmati compile` for each row, followed by WORDs
       rows.py have PART FIGURES.jsonl            exit status 1 if a figure of this part of bench/gpu_figures.py is missing or stale
DIGESTS: the output of `cosmati bench table --digest` for TABLE.
"""
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.txt")
LINES = re.compile(r" --lines \S+")
TIMING = re.compile(r" --(?:same-layout|(?:peer|slices|slice-seconds|verify-below) \S+)")
PREFIX, SUFFIX = "cosmati bench ", " --backend cuda"
Row = collections.namedtuple("Row", "words name promise thinned")


def read(path=TABLE):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words, _, about = line.partition("#")
            if words.strip():
                name, promise, *rest = (part.strip() for part in about.split("|"))
                rows.append(Row(" ".join(words.split()), name, promise, rest == ["thinned"]))
    return rows


def command(row, whole=False):
    """Returns the command that the result lines of the row record."""
    words = LINES.sub("", row.words) if whole and row.thinned else row.words
    return PREFIX + shlex.join(words.split()) + SUFFIX


def json_lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:  # a program that was killed may have left an incomplete line
        return [json.loads(line) for line in file if line.startswith("{") and line.endswith("}\n")]


def by_command(lines):
    groups = collections.defaultdict(list)
    for line in lines:
        groups[line.get("command")].append(line)
    return groups


def is_whole(lines, digests):
    """Whether every problem was measured with the kernels that it uses now."""
    return bool(digests) and not collections.Counter(line["digest"] for line in digests) - collections.Counter(line["digest"] for line in lines)


def has_part(part, path):
    import gpu_figures  # a report does not need it
    import sources
    fresh = [line for line in json_lines(path) if "digest" in line and line["command"].endswith(f" {part}") and line["digest"] == sources.digest(line["sources"])]
    return len([line for line in fresh if "reason" not in line]) >= gpu_figures.COUNTS[part]


def write(path, groups):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for group in groups.values() for line in group)
    os.replace(path + ".new", path)


def digests(program, device, commands):
    """Returns, by command, the digests of the kernels and the plans of `program` for the GPU that `device` describes."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(" ".join(shlex.split(command.removeprefix(PREFIX))) + "\n" for command in commands)
        file.flush()
        words = [program, "bench", "table", "--file", file.name, "--digest", "--device-description", device]
        answer = subprocess.run(words, capture_output=True, text=True)
    if answer.returncode not in (0, 1):  # exit status 1: a row can no longer be planned; it is stale
        sys.exit(f"{' '.join(words)}: {answer.stderr.strip()}")
    return by_command(json.loads(line) for line in answer.stdout.splitlines())


def text(rows):
    return "".join(f"{row.words}  # {row.name} | {row.promise}{' | thinned' if row.thinned else ''}\n" for row in rows)


def main():
    verb, table, *rest = sys.argv[1:]
    if verb == "have":
        sys.exit(not has_part(table, rest[0]))
    rows = read(table)
    if verb == "select":
        whole = rest == ["--all"]
        print(text(row._replace(words=LINES.sub("", row.words)) if whole and row.thinned else row for row in rows), end="")
    elif verb == "compile":
        print("".join(" ".join([TIMING.sub("", row.words), *rest]) + "\n" for row in rows), end="")
    else:
        now, results = by_command(json_lines(rest[0])), by_command(json_lines(rest[1]))
        todo = [row for row in rows if not is_whole(results[command(row)], now[command(row)])]
        for row in todo:
            if now[command(row)]:  # otherwise the row cannot be planned now, and its results are kept
                results.pop(command(row))
        write(rest[1], results)
        print(text(todo), end="")


if __name__ == "__main__":
    main()
