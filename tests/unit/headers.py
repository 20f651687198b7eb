#!/usr/bin/env python3
"""Compiles each header of lib/ and include/ alone; with --together also all in one: no name may mean two things.

usage: headers.py CHECKOUT BUILD [--together] -- COMPILER [FLAGS]
"""
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    dashes = sys.argv.index("--")
    compiler, together = sys.argv[dashes + 1:], "--together" in sys.argv[3:dashes]
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", '-DOCT_VERSION="0"', "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers",
             "-Wno-sign-compare", "-fsyntax-only", f"-I{root}/lib", f"-I{root}/include", f"-I{build}/lib",
             f"-I{build}/lib/onnx", "-xc", "-"]
    headers = sorted([*root.glob("lib/**/*.h"), *root.glob("include/**/*.h")])

    def compile_these(these):
        text = "".join(f'#include "{h}"\n' for h in these) + "extern int used;\n"
        r = subprocess.run([*compiler, *flags], input=text, capture_output=True, text=True)
        name = these[0].relative_to(root) if these[0] == these[-1] else "all headers together"
        return name, r.returncode, r.stderr

    failed = 0
    with ThreadPoolExecutor(2) as pool:
        # Each twice: the guard against repetition must work as well.
        for name, code, said in pool.map(compile_these, [*([h, h] for h in headers), *([headers] if together else [])]):
            if code:
                failed += 1
                print(f"{name}:\n{said}")
    print(f"{len(headers)} headers, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
