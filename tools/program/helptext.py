"""The verbs, subjects and options of the program, read from its --help."""
import dataclasses
import re
import subprocess

COLUMN = 30  # where the program's help has its descriptions


@dataclasses.dataclass(frozen=True)
class Entry:
    names: tuple  # ("-h", "--help"), or a subcommand and its aliases
    value: str    # "FILE", "NAME=FILE ...", or "" of a flag
    about: str


@dataclasses.dataclass
class Page:
    words: tuple  # after the program's name
    about: str
    usage: str
    groups: dict  # title -> [Entry]; without subcommands and -h
    subcommands: list
    footer: str


def entry_of(label, about):
    if not label.startswith("-"):
        return Entry(tuple(re.split(r",\s*", label)), "", about)
    names, _, value = label.partition(" ")
    return Entry(tuple(names.split(",")), value.strip(), about)


def sections(lines):
    """Returns (title, entries) of each section; the rest of the text has the title None."""
    title, entries, i = None, [], 0
    while i < len(lines):
        line, after = lines[i], lines[i + 1] if i + 1 < len(lines) else ""
        if re.match(r"\S.*:$", line) and re.match(r"  \S", after):
            title, entries = line[:-1], []
            yield title, entries
        elif title and re.match(r"  \S", line):
            if after.startswith(" " * COLUMN):  # the label is too long for its column
                entries.append((line.strip(), after.strip()))
                i += 1
            else:
                entries.append((line[:COLUMN].strip(), line[COLUMN:].strip()) if line[COLUMN - 1:COLUMN] in ("", " ") else (line.strip(), ""))
        elif line:
            title = None
            yield None, [line]
        i += 1


def read_page(program, words):
    shown = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=60)
    if shown.returncode != 0:
        raise SystemExit(f"cosmati {' '.join(words)} --help: {shown.stderr}")
    lines = shown.stdout.splitlines()
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    page = Page(tuple(words), " ".join(lines[:usage]).strip(), lines[usage].removeprefix("Usage: "), {}, [], "")
    footer = []
    for title, entries in list(sections(lines[usage + 1:])):
        if title is None:
            footer += entries
        elif title == "Subcommands":
            page.subcommands = [entry_of(*entry) for entry in entries]
        elif title == "Positionals":
            page.groups[title] = [Entry((label,), "", about) for label, about in entries]
        else:
            found = [entry for entry in (entry_of(*entry) for entry in entries) if "--help" not in entry.names]
            if found:
                page.groups[title] = found
    page.footer = "\n".join(footer)
    return page


def read_tree(program, words=()):
    """Returns the page of each command, a verb before its subjects."""
    page = read_page(program, words)
    yield page
    for entry in page.subcommands:
        yield from read_tree(program, (*words, entry.names[0]))


def read(program):
    """The program's page, and for each verb: its page, the options that all its operations share, and (page, other options) of each subject."""
    top, *pages = read_tree(program)
    verbs = []
    for verb in (page for page in pages if len(page.words) == 1):
        subjects = [page for page in pages if len(page.words) == 2 and page.words[0] == verb.words[0]]
        # A subject without the group Execution (bench table, whose rows are other commands) shares no
        # options.
        everywhere = [{(title, entry) for title, entries in page.groups.items() for entry in entries} for page in subjects if "Execution" in page.groups]
        common = set.intersection(*everywhere) if len(everywhere) > 1 else set()
        shared, own = dict(verb.groups), []
        for page in subjects:
            parts = {True: {}, False: {}}
            for title, entries in page.groups.items():
                for entry in entries:
                    parts[(title, entry) in common].setdefault(title, []).append(entry)
            shared |= parts[True]
            own.append((page, parts[False]))
        verbs.append((verb, shared, own))
    return top, verbs
