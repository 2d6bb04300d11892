"""GitHub's workflow and the Dockerfile do what .ci/run does, on the same system, and name only targets and scripts that exist. Exit
status 77, and the reason, without PyYAML.

check_workflow.py FOLDER_OF_THE_PROJECT"""
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIPPED: Python has no yaml (python3-yaml)")
    sys.exit(77)


def text_of(*path):
    with open(os.path.join(sys.argv[1], *path), encoding="utf-8") as file:
        return file.read()


workflow = yaml.safe_load(text_of(".github", "workflows", "ci.yml"))
docker, makefile, ci = text_of("Dockerfile"), text_of("Makefile"), text_of(".ci", "run")
assert set(workflow[True]) == {"push", "pull_request"}, workflow[True]  # YAML reads `on` as true
jobs = workflow["jobs"]
commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
for name, job in jobs.items():
    assert all(("run" in step) != ("uses" in step) for step in job["steps"]) and job["timeout-minutes"] > 0, name
    image = job["container"]["image"] if isinstance(job["container"], dict) else job["container"]
    assert image == re.search(r"^FROM (\S+) AS source$", docker, re.MULTILINE)[1], (name, image)
assert commands["test"][-1] == ".ci/run" and commands["site"][-2:] == ["make docs", "/usr/bin/python3 tests/docs/check_site.py --built"], commands
assert os.access(os.path.join(sys.argv[1], ".ci", "run"), os.X_OK)
assert [line for line in ci.splitlines() if not line.startswith(("#", "set ", "cd "))] == ["make test"], ci
assert re.search(r"^FROM source AS test\n(?:RUN .*\n)*?RUN make test$", docker, re.MULTILINE)
everything = "\n".join([docker, ci, *(line for lines in commands.values() for line in lines)])
for target in re.findall(r"^(?:RUN )?make (\w+)", everything, re.MULTILINE):
    assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"Makefile has no {target}"
for script in set(re.findall(r"\b(?:tests|tools)/[\w./]+", everything)):
    assert os.path.exists(os.path.join(sys.argv[1], script)), f"there is no {script}"
print("the workflow and the Dockerfile do what .ci/run does")
