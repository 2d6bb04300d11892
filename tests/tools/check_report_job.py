#!/usr/bin/python3
"""bench/gpu/report_job.sh on CPUs with few images: one line per row, and no repetitions.

usage: check_report_job.py COSMATI     exit status 77 where there is no mpirun
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

COSMATI = os.path.abspath(sys.argv[1])
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = ["text, a core", "text into the file system, a core", "files alone", "without files", "report", "report, mpirun -n 2",
        "report, mpirun -n 4", "array, f16, alone", "array, f16"]

if not shutil.which("mpirun"):
    print("SKIPPED: there is no mpirun here")
    sys.exit(77)


def run(folder, *options):
    words = [f"{PROJECT}/bench/gpu/report_job.sh", os.path.dirname(os.path.dirname(COSMATI)), f"{folder}/out", "--backend", "cpu", "--count", "9",
             "--array", "5", "--folder", f"{folder}/files", *options]
    environment = dict(os.environ, PYTHON="/usr/bin/python3", COSMATI_COMMIT="0123", PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    lines = []
    if os.path.exists(f"{folder}/out/report_job.jsonl"):
        with open(f"{folder}/out/report_job.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return done, lines


with tempfile.TemporaryDirectory() as temporary:
    os.mkdir(f"{temporary}/files")
    done, lines = run(temporary, "--seconds", "0")
    assert done.returncode == 1 and "27 runs are left" in done.stdout and not lines, done
    done, lines = run(temporary, "--repeats", "1")
    assert done.returncode == 0 and [line["row"] for line in lines] == ROWS, (done, lines)
    assert all(line["seconds_with_files"] > 0 and line["images"] == (5 if "array" in line["row"] else 9) for line in lines), lines
    assert [line["ranks"] for line in lines] == [1, 1, 1, 1, 1, 2, 4, 1, 1], lines
    assert "mpirun -n 4 / one process: " in done.stdout and "report / files alone: " in done.stdout, done.stdout
    done, again = run(temporary, "--repeats", "1")
    assert done.returncode == 0 and again == lines, (done, again)
    assert not os.listdir(f"{temporary}/files"), os.listdir(f"{temporary}/files")
    done, _ = run(temporary, "--every")
    assert done.returncode == 2 and "unknown argument --every" in done.stderr, done
print("the report's job: every row, and nothing twice")
