/* tests/unit/german.h -- a locale in which numbers have a comma, made where the system lacks it. */
#ifndef OCT_TESTS_GERMAN_H
#define OCT_TESTS_GERMAN_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets the process to de_DE.UTF-8. Returns false where the locale can neither be found nor made. */
static inline bool german_begin(void)
{
    char folder[] = "/tmp/octet-locale-XXXXXX", command[200];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    const bool made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    const bool set = made && setlocale(LC_ALL, "de_DE.UTF-8");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 && set;
}

static inline void german_end(void)
{
    setlocale(LC_ALL, "C");
}

#endif
