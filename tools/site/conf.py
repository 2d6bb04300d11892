"""Sphinx's configuration for the site, which tools/site/build.sh builds from build/site-source."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
    release = re.search(r"project\(cosmati VERSION ([0-9.]+)", file.read())[1]
project = "Cosmati"
author = "The Cosmati maintainers"
copyright = f"{author}, Apache 2.0"  # noqa: A001

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4
# Tables of several columns and signatures of several lines.
maximum_signature_line_length = 100
# The Python package is imported without its compiled module, which docstrings do not need.
sys.path.insert(0, os.path.join(ROOT, "python"))
autodoc_mock_imports = ["cosmati._native", "numpy", "torch"]
breathe_projects = {"cosmati": os.path.join(ROOT, "build", "site-source", "doxygen", "xml")}
breathe_default_project = "cosmati"
# Every header opens the namespace, and C's structs are typedefs of the same name.
suppress_warnings = ["duplicate_declaration.cpp"]
breathe_domain_by_extension = {"h": "cpp"}
cpp_id_attributes = ["COSMATI_API", "COSMATI_DEVICE"]
highlight_language = "none"
smartquotes = False  # it would turn the hyphens of options into dashes
exclude_patterns = ["docs/pictures"]

html_theme = "furo"
html_title = f"Cosmati {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = "$ "

# Pages with a table of contents, which only Sphinx needs.
BELOW = {"docs/decisions/README": ("docs/decisions/[0-9]*", 1), "reference/cpp": ("reference/cpp/**", 1), "reference/program": ("reference/program/*", 1)}


def add_contents(_, docname, source):
    if docname in BELOW:
        pages, depth = BELOW[docname]
        hidden = ":hidden:\n" if docname != "docs/decisions/README" else ""
        source[0] += f"\n\n```{{toctree}}\n:glob:\n:maxdepth: {depth}\n{hidden}\n/{pages}\n```\n"


def setup(app):
    from pygments.lexers.c_cpp import CppLexer
    app.add_lexer("cuda", CppLexer)
    app.connect("source-read", add_contents)
