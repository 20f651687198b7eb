#!/usr/bin/env python3
"""Compiles each header of lib/ and include/ alone.

usage: headers.py CHECKOUT BUILD -- COMPILER [FLAGS]
"""
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    compiler = sys.argv[sys.argv.index("--") + 1:]
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", '-DOCT_VERSION="0"', "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-parameter", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers",
             "-Wno-sign-compare", "-fsyntax-only", f"-I{root}/lib", f"-I{root}/include", f"-I{build}/lib",
             f"-I{build}/lib/onnx", "-xc", "-"]
    headers = sorted([*root.glob("lib/**/*.h"), *root.glob("include/**/*.h")])

    def compile_one(header):
        # Twice: the guard against repetition must work as well.
        text = f'#include "{header}"\n#include "{header}"\nextern int used;\n'
        r = subprocess.run([*compiler, *flags], input=text, capture_output=True, text=True)
        return header, r.returncode, r.stderr

    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for header, code, said in pool.map(compile_one, headers):
            if code:
                failed += 1
                print(f"{header.relative_to(root)}:\n{said}")
    print(f"{len(headers)} headers, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
