// The distribution's static libraries are compiled for programs: they take stdin, stdout and stderr for variables that
// are near, which they are not for a shared library. static_deps.py renames what they ask for to these.
#include <stdio.h>

FILE *octet_stdin, *octet_stdout, *octet_stderr;

__attribute__((constructor)) static void set_streams(void)
{
    octet_stdin = stdin;
    octet_stdout = stdout;
    octet_stderr = stderr;
}
