#!/usr/bin/python3
"""Compiled as C++17, the first error of each public C++ header must be that Cosmati needs C++20; cosmati.h compiles.

usage: check_standard.py COMPILER     exit status 1 and a line for each header that fails in another way
"""
import concurrent.futures
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")


def first_error(header):
    """Returns the first error of a file that includes only this header; empty if it compiles."""
    done = subprocess.run([sys.argv[1], "-std=c++17", "-fsyntax-only", "-fmax-errors=1", "-x", "c++", "-I", INCLUDE, "-"],
                          input=f'#include "{header}"\n', capture_output=True, text=True)
    return next((line for line in done.stderr.splitlines() if " error: " in line), "")


headers = [os.path.relpath(os.path.join(path, name), INCLUDE) for path, _, names in os.walk(INCLUDE) for name in names if name.endswith(".h")]
plain_c = {"cosmati.h", "cosmati/c/problems.h"}
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    errors = dict(zip(headers, pool.map(first_error, headers)))
wrong = [f"{header} as C++17: {error or 'compiles'}" for header, error in sorted(errors.items())
         if header not in plain_c and "Cosmati needs C++20" not in error]
wrong += [f"{header} as C++17: {errors[header]}" for header in plain_c if errors[header]]
if len(headers) < 100:
    wrong.append(f"only {len(headers)} headers were found in {INCLUDE}")
print("\n".join(wrong) or f"{len(headers) - len(plain_c)} headers ask for C++20")
sys.exit(1 if wrong else 0)
