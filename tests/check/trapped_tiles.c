/* tests/check/trapped_tiles.c -- AMX's instructions on a CPU that lacks them, or without the system's leave to use
 * them: each is an illegal one, and the handler of that signal does in C (trapped_tiles.h) what it says. So the kernels
 * run as the compiler wrote them for the CPU; over SIMDe another build of them does. */
#define _GNU_SOURCE
#include "trapped_tiles.h"

#include <cpuid.h>

/* Where the state that the system saved for a signal keeps the tiles' configuration (CPUID leaf 13); 0: this CPU has
 * none. */
static uint32_t configuration_at(void)
{
    enum { STATES = 13, CONFIGURATION = 17 };
    uint32_t size, at, x;
    return __get_cpuid_count(STATES, CONFIGURATION, &size, &at, &x, &x) && size == sizeof(oct_tiles_shape) ? at : 0;
}

static uint32_t at;

/* What oct_portable_must stops at is an illegal instruction as well, and none of these: it ends the program. */
static void on_illegal(int number_of, siginfo_t *info, void *context)
{
    (void)number_of, (void)info;
    mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
    if (*(const uint8_t *)m->gregs[REG_RIP] != 0xc4) {
        signal(SIGILL, SIG_DFL);
        return;
    }
    step(m, at);
}

__attribute__((constructor)) static void begin(void)
{
    const struct sigaction a = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER };
    at = configuration_at();
    sigaction(SIGILL, &a, NULL);
}
