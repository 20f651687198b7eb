#!/bin/sh
# A C compiler for meson: compiles with cc, and links for an older glibc than the system's, by the package ziglang.
#
#   OCT_ZIG_PYTHON=PYTHON OCT_GLIBC=2.17 [OCT_MACHINE=aarch64] link_old.sh ARGUMENT...
#
# Which versions of the C library's symbols a program asks for is decided when it is linked. zig has a list of the symbols of each glibc, and those parts
# of old ones that were linked into programs (stat was, until 2.33). So all code is what cc makes of it, and runs where the old glibc is.
set -eu
cc=cc
[ "${OCT_MACHINE-}" = "" ] || cc=$OCT_MACHINE-linux-gnu-gcc # for another machine
for word in "$@"; do
    case $word in
    # What compiles alone, and questions: meson's, about the compiler and its linker.
    -c | -E | -S | -fsyntax-only | --version | -v | -dump* | -print* | --print* | -Wl,--version) exec "$cc" "$@" ;;
    esac
done
# zig would compile sources with checks that need a library of their own.
exec "$OCT_ZIG_PYTHON" -m ziglang cc -target "${OCT_MACHINE:-$(uname -m)}-linux-gnu.$OCT_GLIBC" -O2 -fno-sanitize=undefined "$@"
