/* lib/base/stack.h -- work that needs more stack than the thread of a caller may have. */
#ifndef OCT_BASE_STACK_H
#define OCT_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* What the deepest calls take, twice. Kernels have tiles of up to 200 kB on the stack. */
enum { OCT_STACK_LEAST = 512 << 10 };

/* Calls fn(arg): on this thread if OCT_STACK_LEAST bytes of its stack are left, else on a thread that is started for
 * it, while this one waits. Returns false, and has called nothing, when no thread can be started. */
bool oct_stack_call(void (*fn)(void *arg), void *arg);

#endif
