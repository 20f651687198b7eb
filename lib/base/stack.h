/* lib/base/stack.h -- runs work that may need more stack than the caller's thread has. */
#ifndef OCT_BASE_STACK_H
#define OCT_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* Twice the stack that the deepest calls take, in bytes. Kernels have tiles of up to 200 kB on the stack. */
enum { OCT_STACK_LEAST = 512 << 10 };

/* Calls fn(arg) on this thread if OCT_STACK_LEAST bytes of its stack are left; otherwise on a new thread, for which
 * this one waits. Returns false, and has called nothing, when no thread can be started. */
bool oct_stack_call(void (*fn)(void *arg), void *arg);

#endif
