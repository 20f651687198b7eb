/* tests/check/trapped_tiles.c -- AMX's instructions on a CPU that lacks them: each is an illegal one, and the handler of that signal does in C
 * (kernels/tiles_portable.h) what it says. So the kernels run as the compiler wrote them for the CPU; over SIMDe another build of them does. */
#define _GNU_SOURCE
#include "kernels/tiles_portable.h"

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* An instruction of VEX map 2: opcode, prefix (0 to 3: none, 66, f3, f2), registers, or where its operand in memory lies. */
typedef struct instruction {
    int op, prefix, reg, rm, vvvv;
    bool memory;
    uintptr_t base;
    size_t stride, length;
} instruction;

static uintptr_t number(const greg_t *regs, int i)
{
    static const int order[] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
    return (uintptr_t)regs[order[i]];
}

static uintptr_t offset_at(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return (uintptr_t)(intptr_t)v;
}

/* Behind the ModRM byte; its forms without a base register do not occur but relative to the next instruction. */
static void find_operand(const greg_t *regs, const uint8_t *p, int high_x, int high_b, instruction *i)
{
    const int mod = p[4] >> 6, rm = p[4] & 7;
    if (rm == 4) {
        const int index = (p[5] >> 3 & 7) | high_x;
        i->base = number(regs, (p[5] & 7) | high_b);
        i->stride = index == 4 ? 0 : number(regs, index) << (p[5] >> 6);
        i->length++;
    } else if (rm == 5 && mod == 0) {
        i->length += 4;
        i->base = (uintptr_t)p + i->length + offset_at(p + 5);
        return;
    } else {
        i->base = number(regs, rm | high_b);
    }
    if (mod == 1)
        i->base += (uintptr_t)(intptr_t)(int8_t)p[i->length++];
    if (mod == 2) {
        i->base += offset_at(p + i->length);
        i->length += 4;
    }
}

static instruction decode(const greg_t *regs)
{
    const uint8_t *p = (const uint8_t *)regs[REG_RIP];
    oct_portable_must(p[0] == 0xc4 && (p[1] & 31) == 2 && p[2] >> 7 == 0);
    instruction i = { .op = p[3], .prefix = p[2] & 3, .reg = p[4] >> 3 & 7, .rm = p[4] & 7, .vvvv = ~p[2] >> 3 & 15, .memory = p[4] >> 6 != 3, .length = 5 };
    if (i.memory)
        find_operand(regs, p, p[1] & 0x40 ? 0 : 8, p[1] & 0x20 ? 0 : 8, &i);
    return i;
}

static void run(const instruction *i)
{
    switch (i->op << 8 | i->prefix) {
    case 0x4900: oct_portable_tiles(i->memory ? (const oct_tiles_shape *)(i->base + i->stride) : NULL); break;
    case 0x4903: oct_portable_zero(i->reg); break;
    case 0x4b03: oct_portable_load(i->reg, (const void *)i->base, i->stride); break;
    case 0x4b02: oct_portable_store(i->reg, (void *)i->base, i->stride); break;
    case 0x5e01: oct_portable_dot_us(i->reg, i->rm, i->vvvv); break;
    case 0x5e03: oct_portable_dot_ss(i->reg, i->rm, i->vvvv); break;
    case 0x5c02: oct_portable_dot_bf16(i->reg, i->rm, i->vvvv); break;
    default: oct_portable_must(0);
    }
}

/* What oct_portable_must stops at is an illegal instruction as well, and none of these: it ends the program. */
static void on_illegal(int number_of, siginfo_t *info, void *context)
{
    (void)number_of, (void)info;
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (*(const uint8_t *)regs[REG_RIP] != 0xc4) {
        signal(SIGILL, SIG_DFL);
        return;
    }
    const instruction i = decode(regs);
    run(&i);
    regs[REG_RIP] += (greg_t)i.length;
}

__attribute__((constructor)) static void begin(void)
{
    const struct sigaction a = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigaction(SIGILL, &a, NULL);
}
