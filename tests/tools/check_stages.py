"""tools/test.sh: both stages run even if the first fails, the exit status reports failures, and CTest's summary comes last.

check_stages.py FOLDER_OF_THE_PROJECT"""
import os, shutil, subprocess, sys, tempfile

CMAKE = """#!/bin/sh
echo "cmake $*" >>"$RAN"
case "$*" in "--build --preset $BAD_BUILD") exit 1 ;; esac
"""
CTEST = """#!/bin/sh
echo "ctest $*" >>"$RAN"
echo " 1/2 Test #23: some.quick.test .........   Passed    0.25 sec"
echo " 2/2 Test  #2: some.slow.test ..........   Passed   71.50 sec"
if [ "$2" = "$BAD_TESTS" ]; then echo; echo "50% tests passed, 1 tests failed out of 2"; exit 8; fi
echo; echo "100% tests passed, 0 tests failed out of 2"
"""


def run(**environment):
    with tempfile.TemporaryDirectory(prefix="cosmati-stages-") as folder:
        os.makedirs(folder + "/tools")
        os.makedirs(folder + "/bin")
        shutil.copy(sys.argv[1] + "/tools/test.sh", folder + "/tools")
        for name, text in (("cmake", CMAKE), ("ctest", CTEST)):
            with open(f"{folder}/bin/{name}", "w") as file:
                file.write(text)
            os.chmod(f"{folder}/bin/{name}", 0o755)
        done = subprocess.run([folder + "/tools/test.sh"], capture_output=True, text=True,
                              env={"PATH": f"{folder}/bin:{os.environ['PATH']}", "RAN": folder + "/ran", "BAD_BUILD": "", "BAD_TESTS": "", **environment})
        ran = open(folder + "/ran").read()
    return done.returncode, [line for line in done.stdout.splitlines() if line], [stage for stage in ("sanitize", "release") if f"ctest --preset {stage}" in ran]


PASSED, FAILED = "100% tests passed, 0 tests failed out of 2", "50% tests passed, 1 tests failed out of 2"
for environment, status, last, stages in (({}, 0, PASSED, ["sanitize", "release"]),
                                          ({"BAD_TESTS": "sanitize"}, 1, FAILED, ["sanitize", "release"]),
                                          ({"BAD_TESTS": "release"}, 1, FAILED, ["sanitize", "release"]),
                                          ({"BAD_BUILD": "sanitize"}, 1, "The stage sanitize ended before its tests.", ["release"])):
    got = run(**environment)
    assert (got[0], got[1][-1], got[2]) == (status, last, stages), (environment, got)
    assert any("71.5 s  some.slow.test" in line for line in got[1]) and any(line.endswith(" s  release: build") for line in got[1]), got[1]
print("the stages are run and reported as they should be")
