"""Reads and writes the result lines of report_job.sh.

usage: report_job.py have LINES ROW REPEAT          exit status 0 if this commit's line exists
       report_job.py add LINES ROW REPEAT BEGIN END MACHINE STDOUT COMMAND
       report_job.py ratios LINES                   the median of each row for this commit
"""
import json
import os
import statistics
import sys

COMMIT = os.environ["COSMATI_COMMIT"]
NUMBERS = 64 * 64 * 3  # numbers per image


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in map(json.loads, file) if line["commit"] == COMMIT]
    except OSError:
        return []


def have(path, row, repeat):
    return any(line["row"] == row and line["repeat"] == int(repeat) for line in read(path))


def add(path, row, repeat, begin, end, machine, stdout, command):
    with open(stdout, encoding="utf-8") as file:
        told = [json.loads(line) for line in file if line.startswith("{")]
    rates = [line["images_per_second"] for line in told if line.get("event") in ("epoch", "progress")]
    record = {"row": row, "repeat": int(repeat), **told[-1]}
    if rates:  # the first rates include one-time work
        record["images_per_second"] = statistics.median(rates[len(rates) // 2:])
    record.update(wall_seconds=float(end) - float(begin), commit=COMMIT, machine=machine, command=command)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def ratios(path):
    lines = read(path)

    def median(row, field="seconds_with_files"):
        values = [line[field] for line in lines if line["row"] == row]
        return statistics.median(values) if values else None

    def tell(what, value, goal, unit=""):
        if value is not None:
            print(f"{what}: {value:.3g}{unit} ({goal})")

    def over(row, base, field="seconds_with_files"):
        a, b = median(row, field), median(base, field)
        return None if a is None or not b else a / b

    for row in dict.fromkeys(line["row"] for line in lines):
        print(f"{row}: {1e3 * (median(row, 'seconds_with_files') or 0):.1f} ms" if "train" not in row else
              f"{row}: {median(row, 'images_per_second'):.0f} images/s")
    for row in ("text, a core", "text into the file system, a core"):
        count, seconds = median(row, "images"), median(row)
        if seconds:
            tell(f"{row}, numbers/s", count * NUMBERS / seconds / 1e6, "goal: at least 60 M", " M")
    for row in ("report", "report, 2 GPUs"):
        tell(f"{row} / files alone", over(row, "files alone"), "goal: at most 1.1")
    tell("report / without files", over("report", "without files"), "on processors the goal is 1.1")
    for n in (2, 4):
        tell(f"mpirun -n {n} / one process", over(f"report, mpirun -n {n}", "report"), "goal: at most 1.15")
        tell(f"mpirun -n {n} / one process of 2 GPUs", over(f"report, mpirun -n {n}", "report, 2 GPUs"), "goal: at most 1.15")
    tell("array, 1 GPU / 2 GPUs", over("array, f16", "array, f16, 2 GPUs"), "goal: at least 1.9, or the next at most 1.11")
    tell("array, 2 GPUs / array alone", over("array, f16, 2 GPUs", "array, f16, alone"), "")
    tell("array / array alone", over("array, f16", "array, f16, alone"), "")
    for net in ("LeNet-5", "DCGAN"):
        tell(f"train {net}, 2 GPUs / 1", over(f"train {net}, GPUs: 2", f"train {net}, GPUs: 1", "images_per_second"), "goal: at least 1.85")


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    found = {"have": have, "add": add, "ratios": ratios}[verb](*words)
    sys.exit(0 if verb != "have" or found else 1)
