#!/usr/bin/env python3
"""Writes the tables of python/src/operations.h from the C interface: for each function cosmati_NAME_problem, the fields of its struct.

usage: operations.py PROBLEMS_H OUTPUT
"""
import re
import sys

KINDS = {"cosmati_tensor": "tensor", "int32_t": "integer32", "int64_t": "integer64", "double": "real"}


def fields_of(body):
    """(name, kind) of the members that Python sets; those of other types keep their defaults."""
    for type_, members in re.findall(r"(\w+)\s+([^;*]+);", body):
        for member in members.split(",") if type_ in KINDS else ():
            name, extent = re.fullmatch(r"\s*(\w+)(?:\[(\d)\])?\s*", member).groups()
            if extent is None:
                yield name, KINDS[type_]
            elif (type_, extent) == ("int64_t", "2"):
                yield name, "pair"
            else:
                sys.exit(f"{type_} {name}[{extent}] has no FieldKind")


def main():
    text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.DOTALL)
    bodies = {struct: body for body, struct in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+);", text)}
    rows = []
    with open(sys.argv[2], "w") as out:
        for name, struct in re.findall(r"cosmati_status cosmati_(\w+)_problem\(\s*(\w+) const\* \w+,", text):
            fields = list(fields_of(bodies[struct]))
            if not fields:
                continue
            entries = ", ".join(f'{{"{field}", offsetof({struct}, {field}), {kind}}}' for field, kind in fields)
            out.write(f"constexpr Field {name}_fields[] = {{{entries}}};\n")
            default = struct.replace("cosmati_", "cosmati_default_", 1)
            epilogue = f"offsetof({struct}, epilogue)" if "epilogue;" in bodies[struct] else "0"
            rows.append(f'operation<{struct}, {default}, cosmati_{name}_problem>("{name}", {name}_fields, {epilogue})')
        out.write("constexpr Operation all[] = {" + ",\n".join(rows) + "};\n")


main()
