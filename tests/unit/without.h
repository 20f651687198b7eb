/* Ends a test that needs a library which the build lacks. cmocka's skip() is not used: before 1.1.7 it reports "not ok", and meson counts a failure. The line says
 * that nothing was tested. Include after cmocka. */
#ifndef OCT_TESTS_WITHOUT_H
#define OCT_TESTS_WITHOUT_H

#define RETURN_WITHOUT(library)                                             \
    do {                                                                    \
        print_message("skipped: this build has no %s\n", library);          \
        return;                                                             \
    } while (0)

#endif
