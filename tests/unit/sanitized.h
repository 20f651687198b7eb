/* tests/unit/sanitized.h -- whether a test runs under a sanitizer, which counts memory and stacks in other ways, and
 * whose own locks a child made by fork may find taken. */
#ifndef OCT_TESTS_SANITIZED_H
#define OCT_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer))
#else
#define SANITIZED 0
#endif

/* Leaves a test that has one thread out where threads alone are looked at. */
#if defined(__SANITIZE_THREAD__)
#define SKIP_WITH_ONE_THREAD()                                             \
    do {                                                                   \
        print_message("# skipped: one thread, and threads are checked\n"); \
        return;                                                            \
    } while (0)
#else
#define SKIP_WITH_ONE_THREAD() (void)0
#endif

#endif
