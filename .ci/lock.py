"""Pin what CI installs: `python .ci/lock.py > .ci/lock.txt`, with Python 3.11 on Linux (x86-64).

Every package that `pip install -e '.[dev]'` would take there, with the SHA-256 of its file. PyTorch is left out, since
its builds differ from machine to machine, and so are the libraries for graphics cards that some of them bring.
"""

import json
import re
import subprocess
import sys

BUILDS = re.compile(r"torch|triton|nvidia[-_].*|cuda[-_].*|tsteval")


def main():
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--dry-run",
        "--ignore-installed",
        "--report",
        "-",
        "-e",
        ".[dev]",
    ]
    report = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    print("# made by .ci/lock.py; Python 3.11, Linux, x86-64")
    found = {
        entry["metadata"]["name"].lower(): (
            entry["metadata"]["version"],
            entry["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for entry in report["install"]
        if not BUILDS.fullmatch(entry["metadata"]["name"].lower())
    }
    for name, (version, digest) in sorted(found.items()):
        print(f"{name}=={version} --hash=sha256:{digest}")


if __name__ == "__main__":
    main()
