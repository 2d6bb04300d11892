#!/usr/bin/python3
"""Writes the program's --help texts, one file for the program and one for each verb: man pages or Markdown.

usage: write_help.py PROGRAM man|markdown FOLDER
"""
import os
import subprocess
import sys

import helptext

SHARED = "Options that all operations share are listed first."


def roff(text):
    """Returns the text with roff requests and escapes quoted."""
    for plain, escaped in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("~", "\\(ti"), ("`", "\\(ga")):
        text = text.replace(plain, escaped)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.splitlines())


def man_head(name, about, version):
    return f'.TH {name.upper()} 1 "" "{version}" "User Commands"\n.SH NAME\n{roff(name)} \\- {roff(about.rstrip(".").lower())}\n.SH SYNOPSIS'


def man_entries(groups):
    for title, entries in groups.items():
        if title != "Options":
            yield f".PP\n{roff(title)}:"
        for entry in entries:
            value = f" \\fI{roff(entry.value)}\\fR" if entry.value else ""
            yield f".TP\n\\fB{roff(', '.join(entry.names))}\\fR{value}\n{roff(entry.about)}"


def man_program(top, verbs, version):
    yield man_head("cosmati", top.about, version) + "\n\\fBcosmati\\fR \\fIVERB\\fR [\\fISUBJECT\\fR] [\\fIOPTION\\fR]..."
    yield f".SH DESCRIPTION\n.nf\n{roff(top.footer)}\n.fi\n.SH VERBS"
    yield from (f".TP\n\\fB{verb.words[0]}\\fR\n{roff(verb.about)}; see \\fBcosmati\\-{verb.words[0]}\\fR(1)" for verb, _, _ in verbs)
    yield ".SH OPTIONS"
    yield from man_entries(top.groups)


def man_verb(verb, shared, own, version, top):
    name = verb.words[0]
    yield man_head(f"cosmati-{name}", verb.about, version)
    yield f"\\fBcosmati {name}\\fR" + (" \\fISUBJECT\\fR" if own else "") + " [\\fIOPTION\\fR]..."
    if verb.footer != top.footer:
        yield f".SH DESCRIPTION\n.nf\n{roff(verb.footer)}\n.fi"
    yield ".SH OPTIONS" + (f"\n{SHARED}" if own and shared else "")
    yield from man_entries(shared)
    for page, groups in own:
        names = next(entry.names for entry in verb.subcommands if entry.names[0] == page.words[1])
        yield f".SH {roff(', '.join(names).upper())}\n{roff(page.about)}"
        yield from man_entries(groups)
        if page.footer != top.footer:
            yield f".PP\n.nf\n{roff(page.footer)}\n.fi"
    yield ".SH SEE ALSO\n\\fBcosmati\\fR(1)"


def cell(text):
    for plain in "\\`*_[|":
        text = text.replace(plain, "\\" + plain)
    return text.replace("<", "&lt;")


def markdown_tables(groups):
    for title, entries in groups.items():
        yield f"| {cell(title)} | |\n| --- | --- |"
        yield from ("| `" + f"{', '.join(entry.names)} {entry.value}".strip().replace("|", "\\|") + f"` | {cell(entry.about)} |" for entry in entries)
        yield ""


def markdown_program(top, verbs, version):
    yield f"# cosmati\n\n{top.about} This is the output of `--help` ({version}).\n\n| verb | |\n| --- | --- |"
    yield from (f"| [{verb.words[0]}](cosmati-{verb.words[0]}.md) | {cell(verb.about)} |" for verb, _, _ in verbs)
    yield f"\n```text\n{top.footer}\n```"


def markdown_verb(verb, shared, own, _, top):
    yield f"# cosmati {verb.words[0]}\n\n{cell(verb.about)}.\n"
    if verb.footer != top.footer:
        yield f"```text\n{verb.footer}\n```\n"
    if own and shared:
        yield f"{SHARED}\n"
    yield from markdown_tables(shared)
    for page, groups in own:
        yield f"## {page.words[1]}\n\n{cell(page.about)}\n"
        yield from markdown_tables(groups)
        if page.footer != top.footer:
            yield f"```text\n{page.footer}\n```\n"


def main():
    program, form, folder = sys.argv[1:]
    of_program, of_verb, ending = {"man": (man_program, man_verb, "1"), "markdown": (markdown_program, markdown_verb, "md")}[form]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    top, verbs = helptext.read(program)
    os.makedirs(folder, exist_ok=True)
    files = {"cosmati": of_program(top, verbs, version)}
    files |= {f"cosmati-{verb.words[0]}": of_verb(verb, shared, own, version, top) for verb, shared, own in verbs}
    for name, lines in files.items():
        with open(os.path.join(folder, f"{name}.{ending}"), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


main()
