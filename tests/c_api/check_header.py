#!/usr/bin/python3
"""Checks that cosmati.h documents each option of the library on a separate line, and that its lists are not merged.

usage: check_header.py LIBRARY     exit status 1 and a line for each finding
"""
import ctypes
import os
import re
import sys
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Tensor(ctypes.Structure):
    _fields_ = [("type", c_int32), ("rank", c_int32), ("extent", c_int64 * 6), ("stride", c_int64 * 6), ("alignment", c_int64)]


class Add(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("a", Tensor), ("b", Tensor), ("y", Tensor), ("alpha", ctypes.c_double), ("beta", ctypes.c_double)]


def legal_options(library):
    """Returns {function: names}, from the messages about an unknown option."""
    handle, problem, plan = c_void_p(), c_void_p(), c_void_p()
    vector = Tensor(1, 1, (c_int64 * 6)(4), (c_int64 * 6)(1), 4)
    add = Add(size=ctypes.sizeof(Add), a=vector, y=vector, alpha=1)
    library.cosmati_last_error.restype = c_char_p
    if library.cosmati_create(b"reference", None, byref(handle)) or library.cosmati_add_problem(byref(add), byref(problem)):
        sys.exit(library.cosmati_last_error())
    refusals = {"cosmati_create": lambda: library.cosmati_create(b"reference", b"abacus=1", byref(plan))}
    for name in ("cosmati_make_plan", "cosmati_find_plan"):
        refusals[name] = lambda name=name: getattr(library, name)(handle, problem, b"abacus=1", byref(plan))
    options = {}
    for name, refuse in refusals.items():
        if refuse() == 0:
            sys.exit(f"{name} takes the option abacus")
        options[name] = re.search(r"valid [^:]*: (.*)", library.cosmati_last_error().decode()).group(1).split(", ")
    return options


findings = []
with open(os.path.join(ROOT, "include/cosmati.h"), encoding="utf-8") as file:
    header = file.read()
for function, names in legal_options(ctypes.CDLL(sys.argv[1])).items():
    for option in names:
        if not re.search(rf"^ \*   {option}=\S+ +\S", header, re.MULTILINE):
            findings.append(f"include/cosmati.h: no line ' *   {option}=...', an option of {function}")
for path in ("include/cosmati.h", "include/cosmati/c/problems.h"):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if re.match(r" \* \S.*\S {3,}\S", line):  # columns of a list, within a paragraph
                findings.append(f"{path}:{number}: a list runs into the text: {line.strip()}")
print("\n".join(findings) or "cosmati.h: each option on a line of its own")
sys.exit(1 if findings else 0)
