"""bench/gpu/figures.sh with a program that only prints what it would measure, and the report of results with outdated digests.

check_figures.py FOLDER_OF_THE_PROJECT COSMATI"""
import json, os, shutil, subprocess, sys, tempfile

PROJECT, COSMATI = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path[:0] = [f"{PROJECT}/bench", f"{PROJECT}/bench/gpu"]
sys.dont_write_bytecode = True
import gpu_figures, report, rows, sources  # noqa: E402

# The stub has two problems per row; the digest of softmax depends on $DIGEST; it measures $MOST rows and one more problem, and
# then fails.
STUB = """#!/usr/bin/python3
import json, os, shlex, sys
words = sys.argv[1:]
with open(os.environ["RAN"], "a") as file:
    file.write(" ".join(words) + "\\n")
if words[0] == "info":
    print("name = NVIDIA H200")
if words[:2] == ["bench", "table"]:
    table = [line.split("#")[0].split() for line in open(words[words.index("--file") + 1])]
    measured = 0
    for row in filter(None, table):
        for problem in range(2):
            line = {"command": "cosmati bench " + shlex.join(row) + " --backend cuda", "problem": problem, "verified": True, "peer_verified": None,
                    "digest": f"{' '.join(row)} {problem} {os.environ['DIGEST'] if row[0] == 'softmax' else ''}"}
            if "--digest" in words:
                print(json.dumps(line))
            else:
                if measured == int(os.environ["MOST"]) and problem == 1:
                    sys.exit(1)
                with open(words[words.index("--json") + 1], "a") as file:
                    file.write(json.dumps(line) + "\\n")
        measured += 1
"""
TABLE = """gemm --size 1x1x1 --peer cublaslt --slices 3  # one | mean>=1
gemm --suite squares --lines 1,2 --peer cublaslt  # two | mean | thinned
softmax --size 5x5 --epilogue f(a)  # three | copy>=0.85
"""


def check_script(folder):
    os.makedirs(f"{folder}/bench/gpu")
    os.makedirs(f"{folder}/build/bin")
    for name in ("figures.sh", "rows.py"):
        shutil.copy(f"{PROJECT}/bench/gpu/{name}", f"{folder}/bench/gpu")
    for name in ("measure.py", "sources.py"):
        shutil.copy(f"{PROJECT}/bench/{name}", f"{folder}/bench")
    open(f"{folder}/bench/gpu/libraries.sh", "w").close()  # it searches all of /usr for GPU libraries
    with open(f"{folder}/bench/gpu/table.txt", "w") as file:
        file.write(TABLE)
    with open(f"{folder}/build/bin/cosmati", "w") as file:
        file.write(STUB)
    os.chmod(f"{folder}/build/bin/cosmati", 0o755)

    def run(*options, most=100, digest="a", out="out"):
        environment = dict(os.environ, RAN=f"{folder}/ran", MOST=str(most), DIGEST=digest, PYTHON="/usr/bin/python3", COSMATI_COMMIT="0123", PYTHONDONTWRITEBYTECODE="1")
        open(f"{folder}/ran", "w").close()
        done = subprocess.run([f"{folder}/bench/gpu/figures.sh", f"{folder}/build", f"{folder}/{out}", *options], env=environment, capture_output=True, text=True)
        lines = [line["digest"].rsplit(" ", 2)[0] for line in rows.json_lines(f"{folder}/{out}/table.jsonl")]
        return done, lines, open(f"{folder}/ran").read()

    first, second, third = (
        "gemm --size 1x1x1 --peer cublaslt --slices 3", "gemm --suite squares --lines 1,2 --peer cublaslt", "softmax --size 5x5 --epilogue f(a)")
    # The program fails in the middle of the second row and, when called again, in that of the third; complete rows are kept,
    # and only the rest is measured.
    done, lines, ran = run(most=1)
    assert done.returncode == 1 and "1 rows are left" in done.stdout and lines == [first] * 2 + [second] * 2, (done, lines)
    assert sorted(line for line in ran.splitlines() if line.startswith("compile")) == sorted(
        f"compile {words} --backend cuda --device-description {folder}/out/device.txt --threads 1"
        for words in ("gemm --size 1x1x1", "gemm --suite squares --lines 1,2", third)), ran
    done, lines, ran = run()
    assert done.returncode == 0 and lines == [first] * 2 + [second] * 2 + [third] * 2, (done, lines)
    assert "compile gemm --size" not in ran, ran
    done, lines, ran = run()
    assert done.returncode == 0 and len(lines) == 6 and "--json" not in ran and "compile" not in ran, (done, ran)
    # If a kernel changes, only its row is measured again.
    done, lines, ran = run(digest="b")
    assert done.returncode == 0 and lines == [first] * 2 + [second] * 2 + [third] * 2 and "compile softmax" in ran and "compile gemm" not in ran, (done, lines, ran)
    done, lines, ran = run("--all", out="whole")
    assert done.returncode == 0 and lines == [first] * 2 + ["gemm --suite squares --peer cublaslt"] * 2 + [third] * 2, (done, lines)
    assert sorted(os.listdir(f"{folder}/out")) == ["device.txt", "log.txt", "table.jsonl"]
    done, _, _ = run("--every")
    assert done.returncode == 2 and "unknown argument --every" in done.stderr, done


def as_measured(line, changes):
    nothing = dict.fromkeys(("peer_refusal", "peer_interface", "peer_version", "peer_verified", "share_of_peak", "share_of_copy", "host_seconds"))
    return {**line, **nothing, "ratio": 0.5, "peer_version": "cuBLASLt 13.1.2", "verified": True, "timing": "graphs", "gpu": "NVIDIA H200",
            "driver": "CUDA 13.0", "commit": "0123456789abcdef", "time": 1795400000, **changes}


def check_report(folder):
    report.RESULTS = folder
    os.makedirs(f"{folder}/h200")
    names = ("GEMM squares bf16 to cuBLASLt", "GEMM skinny bf16 to cuBLASLt", "GEMM deep bf16 to cuBLASLt", "GEMM llm bf16 to cuBLASLt")
    chosen = [row for row in rows.read() if row.name in names]
    assert len(chosen) == len(names), chosen
    now = report.digests_now(COSMATI, f"{folder}/h200", [rows.command(row, row.name == names[3]) for row in chosen])
    changes = {names[0]: {}, names[1]: {"digest": "0" * 24}, names[2]: {"digest": None}, names[3]: {"ratio": 0.25}}
    with open(f"{folder}/h200/table.jsonl", "w") as file:
        for row in chosen:
            lines = now[rows.command(row, row.name == names[3])]
            assert lines, row
            file.writelines(json.dumps(as_measured(line, changes[row.name] if line is lines[-1] else {})) + "\n" for line in lines)
    with open(f"{folder}/h200/figures.jsonl", "w") as file:
        for figure, told in (("LeNet-5 a", {"digest": sources.digest("kernels"), "sources": "kernels"}), ("LeNet-5 b", {"digest": "0", "sources": "kernels"}), ("LeNet-5 c", {})):
            file.write(json.dumps({"figure": figure, "value": 2, "promised": 1, "at_least": True, "met": True, "unit": "x", "machine": "NVIDIA H200", "commit": "1",
                                   "date": "2026-11-23", "command": "bench/figures.py", "peer": "PyTorch 2.11 compile", **told}) + "\n")
    commands = [rows.command(row, whole) for row in rows.read() for whole in (False, True)]
    told = report.digests_now(COSMATI, f"{folder}/h200", commands)
    assert all(told[command] and None not in {line["digest"] for line in told[command]} for command in commands), [c for c in commands if not told[c]]
    lines, missing = report.all_figures(COSMATI)
    stale = {line["figure"]: line["stale"] for line in lines}
    for name, expected in zip((names[0], names[1], names[2], names[3], "LeNet-5 a", "LeNet-5 b", "LeNet-5 c"), (False, True, True, False, False, True, True)):
        assert all(value == expected for figure, value in stale.items() if figure.startswith(name)), (name, stale)
    assert len(missing) == len(rows.read()) - len(names), missing
    text = report.document(lines, missing)
    assert "## NVIDIA H200\n\n11 figures, 3 met, 8 short, 0 withdrawn, 6 stale." in text, text
    squares = next(line for line in text.splitlines() if line.startswith("| GEMM squares bf16 to cuBLASLt, geometric mean"))
    assert "| 0.5 x | ≥ 0.9 x | **short** | 0123456789ab, 2026-11-23 | 6 problems, 0.5 to 0.5; CUDA 13.0; cuBLASLt 13.1.2 | `cosmati bench gemm --suite squares --lines" in squares, squares
    llm = next(line for line in text.splitlines() if line.startswith("| GEMM llm bf16 to cuBLASLt, least"))
    assert "| 0.25 x | ≥ 0.6 x | **short** |" in llm and "`cosmati bench gemm --suite llm --type bf16" in llm, llm
    assert report.without_stale(text) != text and report.STALE not in report.without_stale(text)
    quoted = report.quotes(lines)
    assert "| NVIDIA H200 | cuBLASLt 13.1.2 | 4 | " in quoted and " | 4 |\n" in quoted and "| NVIDIA H200 | PyTorch 2.11 | 3 | 2 x | 2 x | 0 |" in quoted, quoted


def check_sources(folder):
    """Comments do not change a digest, code does."""
    code = {}
    for name, text in (("a.h", 'int x;  // one\nchar const* y = "// two";'), ("b.h", 'int x; /* three\n */ char const* y =\n"// two";\n'), ("c.h", 'int x; char const* y = "// 2";'),
                       ("d.cmake", 'set(x "#") # one\n'), ("e.cmake", 'set(x "#")')):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
        code[name] = sources.code_of(f"{folder}/{name}")
    assert code["a.h"] == code["b.h"] != code["c.h"] and code["d.cmake"] == code["e.cmake"] == 'set(x "#")', code
    # A part of the networks is complete if all its figures exist and were measured with these sources.
    def has_part(lines):
        with open(f"{folder}/figures.jsonl", "w") as file:
            file.writelines(json.dumps({"command": "bench/figures.py --gpu-parts mnist", **line}) + "\n" for line in lines)
        return rows.has_part("mnist", f"{folder}/figures.jsonl")

    fresh, old = ({"digest": digest, "sources": "networks on a GPU"} for digest in (sources.digest("networks on a GPU"), "0"))
    whole = [fresh] * gpu_figures.COUNTS["mnist"]
    assert has_part(whole) and not any(has_part([one, *whole[1:]]) for one in (old, {}, {**fresh, "reason": "no --torch"})) and not has_part(whole[1:])
    listed = {name: {os.path.relpath(path, PROJECT) for path in sources.files_of(name)} for name in sources.SETS}
    assert "src/backend/cpu/softmax.cpp" in listed["processor"] and "include/cosmati/ops/gemm.h" in listed["processor"]
    assert not any(path.startswith(("docs/", "tests/", "bench/")) or path.endswith(".md") for paths in listed.values() for path in paths)


def check_program(folder):
    """--lines, --digest, the command in a record, and a table with a failing row."""
    def cosmati(*words):
        done = subprocess.run([COSMATI, "bench", *words], capture_output=True, text=True)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stderr

    described = ("--backend", "cuda", "--device-description", "h200", "--digest")
    status, lines, _ = cosmati("gemm", "--suite", "squares", "--lines", "2,13", "--type", "bf16", *described)
    assert status == 0 and [line["problem"] for line in lines] == ["384x384x384 nn", "16384x16384x16384 nn"], lines
    assert lines[0]["command"] == "cosmati bench gemm --suite squares --lines 2,13 --type bf16 --backend cuda", lines[0]
    assert len({line["digest"] for line in lines}) == 2 and all(len(line["digest"]) == 24 for line in lines), lines
    for words, complaint in ((("--suite", "squares", "--lines", "2,14"), "--lines 2,14: the suite squares has 13 problems; valid values: 1 to 13"),
                             (("--suite", "squares", "--lines", "0"), "valid values: 1 to 13"), (("--suite", "squares", "--lines", "two"), "--lines"),
                             (("--size", "8x8x8", "--lines", "1"), "--lines 1 requires --suite or --shapes")):
        status, lines, error = cosmati("gemm", *words, *described)
        assert status == 2 and complaint in error and not lines, (words, error)
    status, lines, _ = cosmati("gemm", "--size", "8x8x8", "--epilogue", "relu(acc + bias[n])", "--backend", "cpu", "--slices", "1", "--slice-seconds", "0.001", "--json")
    assert status == 0 and lines[0]["digest"] is None, lines
    assert lines[0]["command"] == "cosmati bench gemm --size 8x8x8 --epilogue 'relu(acc + bias[n])' --backend cpu --slices 1 --slice-seconds 0.001", lines
    with open(f"{folder}/table.txt", "w") as file:
        file.write("# a table\n\ngemm --size 64x64x64  # one\ngemm --size 64x64\nsoftmax --size 64x64 # two\n")
    status, lines, error = cosmati("table", "--file", f"{folder}/table.txt", *described)
    assert status == 1 and [line["subject"] for line in lines] == ["gemm", "softmax"] and "line 4: " in error, (status, lines, error)
    assert lines[1]["command"] == "cosmati bench softmax --size 64x64 --backend cuda", lines
    status, _, error = cosmati("table", *described)
    assert status == 2 and "missing required option --file FILE" in error, error


for check in (check_script, check_report, check_sources, check_program):
    with tempfile.TemporaryDirectory(prefix="cosmati-figures-") as folder:
        check(folder)
        print(check.__name__, "passed")
