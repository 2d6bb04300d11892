"""Finds the code blocks in the documents."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(document, language):
    """Returns the texts of the blocks of `language` in a document, given by its path from the top folder."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def program(document, language, mark):
    """Returns the one block that contains `mark`."""
    found = [block for block in blocks(document, language) if mark in block]
    if len(found) != 1:
        raise SystemExit(f"{document} has {len(found)} blocks of {language} with '{mark}'; one is expected")
    return found[0]


def marked_blocks(document):
    """Yields (line, language, mark, text) for each block; the mark is X where `<!-- blocks: X -->` stands above it."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        text = file.read()
    for found in re.finditer(r"(?:^<!-- blocks: (\w+) -->\n)?^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start(2)) + 1, found[2], found[1] or "", found[3]
