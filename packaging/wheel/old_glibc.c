// Functions that the headers of a newer glibc call under names that glibc 2.17 lacks (link_old.sh links for it).
#include <fcntl.h>
#include <stdarg.h>

// fcntl with 64-bit offsets, since 2.28. Where long has 64 bits it is fcntl.
__attribute__((visibility("hidden"))) int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return fcntl(fd, command, argument);
}
