#!/usr/bin/python3
"""Completion in bash, zsh and fish offers what the program's --help names, and each option appears in the man pages.

usage: check_shell.py PROGRAM     exit status 1 and a line for each difference
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPLETIONS = os.path.join(ROOT, "share", "completions")
PROGRAM = os.path.abspath(sys.argv[1])
SHELLS = {
    "bash": 'source "$1"; COMP_WORDS=(cosmati "${@:2}"); COMP_CWORD=$(($# - 1)); _cosmati; printf "%s\\n" "${COMPREPLY[@]}"',
    # _describe and _files are replaced: what would be shown is printed.
    "zsh": '_describe() { printf "%s\\n" "${(P@)2}" }; _files() { }; file=$1; shift; words=(cosmati "$@"); CURRENT=$#words; PREFIX=$words[-1]; '
           'complete_it() { source $file }; complete_it',
    "fish": 'source $argv[1]; complete -C (string join " " -- cosmati $argv[2..-1])',
}
FILES = {"bash": "cosmati.bash", "zsh": "_cosmati", "fish": "cosmati.fish"}
failures = []


def call(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        failures.append(f"{' '.join(command)}: status {done.returncode} {done.stderr}")
    return done.stdout


def options_of(*words):
    return set(re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", call(PROGRAM, *words, "--help"), re.MULTILINE))


def subjects_of(*words):
    block = re.search(r"^Subcommands:\n(.*?)\n\n", call(PROGRAM, *words, "--help"), re.MULTILINE | re.DOTALL)[1]
    return set(re.findall(r"^  ([a-z0-9-]+)", block, re.MULTILINE))


def listed(what, column):
    return {line.split()[column] for line in call(PROGRAM, "list", what).splitlines()[1:]}


def check_completion(shell, environment):
    path = os.path.join(COMPLETIONS, FILES[shell])

    def offered(*words):
        shown = call(shell, *([] if shell == "fish" else ["-f"] if shell == "zsh" else ["--norc"]), "-c", SHELLS[shell],
                     *([] if shell == "fish" else ["-"]), path, *words, env=environment)
        return {re.split(r"[\t:]", line)[0] for line in shown.splitlines() if line}

    def expect(words, expected):
        found = offered(*words)
        if found != expected:
            failures.append(f"{shell}: cosmati {' '.join(words)}: missing {sorted(expected - found)}, too many {sorted(found - expected)}")

    expect([""], subjects_of())
    expect(["ex"], {"explain"} if shell != "zsh" else subjects_of())  # zsh itself compares with what was typed
    expect(["run", ""], subjects_of("run"))
    expect(["train", ""], subjects_of("train"))
    for words in (["run", "gemm"], ["run", "batchnorm"], ["bench", "conv"], ["generate", "dcgan"], ["replay"], ["info"]):
        expect([*words, "--"], options_of(*words))
    expect(["run", "gemm", "--a", "x.npy", "--"], options_of("run", "gemm"))
    expect(["bench", "gemm", "--suite", ""], listed("suites", 1))
    expect(["run", "gemm", "--backend", ""], listed("kernels", 1) | {"auto"})
    conv = {line.split()[2] for line in call(PROGRAM, "list", "kernels").splitlines() if line.startswith("conv ")}
    expect(["explain", "conv", "--kernel", ""], conv)
    expect(["run", "gemm", "--type", ""], {"f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2", "s8", "u8", "s32"})


def plain(text):
    return text.replace("\\-", "-")


def check_manual(folder):
    call("/usr/bin/python3", os.path.join(ROOT, "tools", "program", "write_help.py"), PROGRAM, "man", folder)
    for verb in subjects_of():
        with open(os.path.join(folder, f"cosmati-{verb}.1"), encoding="utf-8") as file:
            page = plain(file.read())
        shown = [[verb, subject] for subject in subjects_of(verb)] if "Subcommands:" in call(PROGRAM, verb, "--help") else [[verb]]
        for words in shown:
            help_text = call(PROGRAM, *words, "--help")
            for option in options_of(*words) - {"--help"}:
                if not re.search(rf"{option}(, |\\fR)", page):
                    failures.append(f"cosmati-{verb}.1 has no {option} of {' '.join(words)}")
            for about in re.findall(r"^  --[a-z][^\n]{26} +(\S[^\n]*)$", help_text, re.MULTILINE):
                if about[:40] not in page.replace("\\(aq", "'").replace("\\(ha", "^").replace("\\e", "\\"):
                    failures.append(f"cosmati-{verb}.1 does not say '{about}'")
    if shutil.which("groff") is None:
        print("SKIPPED: there is no groff here; the man pages were not formatted")
        return
    for name in sorted(os.listdir(folder)):
        done = subprocess.run(["groff", "-man", "-ww", "-z", os.path.join(folder, name)], capture_output=True, text=True, check=True)
        if done.stderr:
            failures.append(f"{name}: {done.stderr}")


with tempfile.TemporaryDirectory() as work:
    os.makedirs(os.path.join(work, "bin"))
    os.symlink(PROGRAM, os.path.join(work, "bin", "cosmati"))
    surroundings = dict(os.environ, PATH=f"{work}/bin:{os.environ['PATH']}", HOME=work, XDG_CONFIG_HOME=work, XDG_DATA_HOME=work)
    for name in SHELLS:
        if shutil.which(name):
            check_completion(name, surroundings)
        else:
            print(f"SKIPPED: there is no {name} here")
    check_manual(os.path.join(work, "man"))
print("\n".join(failures) or "completion and man pages have what --help says")
sys.exit(1 if failures else 0)
