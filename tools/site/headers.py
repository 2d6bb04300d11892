#!/usr/bin/python3
"""Writes the pages of the API reference: one for each public header, and a page that lists them by their first line.

usage: headers.py FOLDER XML     XML: Doxygen's folder, whose index it completes
"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")
GROUPS = {
    "The C interface": ["cosmati.h", "cosmati/c"],
    "Operations: problems, plans, runs": ["cosmati/ops"],
    "The epilogue language": ["cosmati/epilogue"],
    "Data types, shapes, views": ["cosmati/core"],
    "User-defined kernels": ["cosmati/gemm/simple.h", "cosmati/gemm/launch.h", "cosmati/gemm/order.h", "cosmati/gemm/policy.h", "cosmati/gemm/policies.h",
                            "cosmati/gemm/requirements.h", "cosmati/gemm/block_product.h", "cosmati/gemm/source.h", "cosmati/gemm/destination.h",
                            "cosmati/gemm/epilogue.h"],
}


def headers_of(entries):
    for entry in entries:
        path = os.path.join(INCLUDE, entry)
        yield from [entry] if entry.endswith(".h") else sorted(f"{entry}/{name}" for name in os.listdir(path) if name.endswith(".h"))


def first_sentence(header):
    with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
        text = file.read()
    comment = re.match(r"(?:// ?(.*)\n)+|/\* (.*?)\*/", text, re.DOTALL)[0]
    words = " ".join(re.sub(r"^\s*(//|/?\*+/?) ?", "", line) for line in comment.splitlines())
    return re.split(r"(?<=[.:]) ", words.strip())[0].rstrip(".:")


def complete_index(folder):
    """Adds paths to Doxygen's index, which has only file names, because Breathe finds files by the index."""
    path = os.path.join(folder, "index.xml")
    index = ElementTree.parse(path)
    for compound in index.getroot().findall("compound[@kind='file']"):
        file = ElementTree.parse(os.path.join(folder, compound.get("refid") + ".xml"))
        compound.find("name").text = file.find("compounddef/location").get("file")
    index.write(path)


def main():
    folder, xml = sys.argv[1:]
    complete_index(xml)
    lines = ["# Headers\n", "From the comments of the public headers. Device headers that are not listed are the building blocks described in "
             "[architecture](../docs/architecture.md).\n"]
    for title, entries in GROUPS.items():
        lines += [f"## {title}\n", "| header | |", "| --- | --- |"]
        for header in headers_of(entries):
            page = os.path.join("cpp", header.removeprefix("cosmati/").removesuffix(".h") + ".md")
            os.makedirs(os.path.dirname(os.path.join(folder, page)), exist_ok=True)
            with open(os.path.join(folder, page), "w", encoding="utf-8") as file:
                file.write(f"# {header}\n\n```cpp\n#include <{header}>\n```\n\n```{{doxygenfile}} {header}\n```\n")
            lines.append(f"| [{header}]({page}) | {first_sentence(header)} |")
        lines.append("")
    with open(os.path.join(folder, "cpp.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


main()
