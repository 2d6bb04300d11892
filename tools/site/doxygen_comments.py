#!/usr/bin/python3
"""Doxygen's INPUT_FILTER: prints a header with its plain comments converted to Doxygen's. Comments are treated as text, not as commands.

usage: doxygen_comments.py HEADER >FILTERED
"""
import re
import sys

TRAILING = re.compile(r"^(?P<code>.*?\S) +// (?P<text>.*)$")
C_TRAILING = re.compile(r"^(?P<code>.*?[\w;,)\]}].*?) /\* (?P<text>(?!\*).*?) \*/$")
FUNCTION = re.compile(r"\)\s*(const|noexcept|override|->[^{]*)?\s*$")
SCOPE = re.compile(r"\b(namespace|struct|class|union|enum)\b|^\s*extern\s*$")


def plain(text):
    """Returns Doxygen's text for these words; text between backticks is code."""
    text = re.sub(r'([\\@<>&#%"]|-{2,3})', r"\\\1", text)
    return re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)


def paragraphs(lines):
    """Returns the lines of a comment; indented text keeps its lines, unless it continues an item of a list."""
    kept = item = False
    for line in lines:
        item = line.startswith("- ") or (item and line.startswith("  "))
        indented = line.startswith("  ") and not item
        if indented != kept and (indented or line.strip()):
            yield r"\verbatim" if indented else r"\endverbatim"
            kept = indented
        yield line if kept else plain(line.strip())
    if kept:
        yield r"\endverbatim"


def documented(lines, indent):
    return [f"{indent}/// {line}".rstrip() for line in paragraphs(lines)]


class Scopes:
    """Tracks whether a line is among declarations, not in the body of a function or an initializer."""

    def __init__(self):
        self.open, self.head = [], ""

    def declares(self):
        return all(self.open)

    def read(self, line):
        line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '""', re.sub(r"//.*|/\*.*?\*/", "", line))
        if line.startswith("#"):
            return
        for token in re.split(r"([{};])", line):
            if token == "{":
                self.open.append(bool(SCOPE.search(self.head)) and not FUNCTION.search(self.head) and not re.search(r"=\s*$", self.head))
            elif token == "}" and self.open:
                self.open.pop()
            self.head = "" if token in ("{", "}", ";") else self.head + token + " "


def comment_blocks(lines):
    """Converts C's multi-line comments to blocks of `//`, one item per line; sections such as `---- Errors` document what follows."""
    within = False
    for line in lines:
        begun = re.match(r"^(\s*)/\* (.*)$", line)
        if not within and not begun:
            yield line
            continue
        indent, text = (begun[1], begun[2]) if begun and not within else (re.match(r"^\s*", line)[0], re.sub(r"^\s*(\*(?!/))? ?", "", line))
        within = not text.endswith("*/")
        yield f"{indent.rstrip(' ') if len(indent) < 2 else indent}// {text.removesuffix('*/').rstrip().removeprefix('---- ')}".rstrip()


def convert(text):
    lines = text.splitlines()
    if "#ifdef __cplusplus" in text:  # a header of C
        lines = list(comment_blocks(C_TRAILING.sub(r"\g<code>  // \g<text>", line) for line in lines))
    head = next((i for i, line in enumerate(lines) if not line.startswith("//")), 0)
    result = [r"/// \file"] + documented([line[2:].removeprefix(" ") for line in lines[:head]], "") + [""]
    scopes, i, column = Scopes(), head, None
    while i < len(lines):
        line, stripped = lines[i], lines[i].strip()
        if stripped.startswith("//"):
            end = i
            while end < len(lines) and lines[end].strip().startswith("//"):
                end += 1
            indent = line[:len(line) - len(stripped)]
            block = [one.strip()[2:].removeprefix(" ") for one in lines[i:end]]
            if column is not None and len(indent) == column:  # continues a comment at the end of the line above
                result += [f"{indent}///< {plain(one)}" for one in block]
            elif scopes.declares() and end < len(lines) and lines[end].strip() and lines[end].strip()[0] not in "}#":
                result += documented(block, indent)
            i = end
            continue
        found = TRAILING.match(line)
        column = None
        if found and scopes.declares() and not re.search(r"[{(]$|^[}#]", found["code"]):
            scopes.read(found["code"])
            column = line.index("// ", len(found["code"]))
            result.append(f"{found['code']}  ///< {plain(found['text'])}")
        else:
            scopes.read(line)
            result.append(line)
        i += 1
    return "\n".join(result) + "\n"


with open(sys.argv[1], encoding="utf-8") as header:
    sys.stdout.write(convert(header.read()))
