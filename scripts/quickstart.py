#!/usr/bin/env python3
"""Writes each `sh` block below the heading "Quickstart" of a README to a file: 1.sh, 2.sh, …"""

import pathlib
import re
import sys


def blocks(text):
    start = re.search(r"^## Quickstart.*$", text, re.M)
    if not start:
        sys.exit("the README has no heading `## Quickstart`")
    rest = text[start.end():]
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.M)[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)


def main():
    readme, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    found = blocks(pathlib.Path(readme).read_text(encoding="utf-8"))
    if len(found) != 2:
        sys.exit(f"the quickstart has {len(found)} blocks of `sh`, and should have two: one for each terminal")
    for number, block in enumerate(found, 1):
        (folder / f"{number}.sh").write_text(block, encoding="utf-8")


main()
