/* tests/check/trapped_tiles.h -- an AMX instruction at which a program was stopped, done in C
 * (kernels/tiles_portable.h). For x86-64 Linux; include it with _GNU_SOURCE. Internal. */
#ifndef OCT_TESTS_TRAPPED_TILES_H
#define OCT_TESTS_TRAPPED_TILES_H

#include "kernels/tiles_portable.h"

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* An instruction of VEX map 2: opcode, prefix (0 to 3: none, 66, f3, f2), registers, or where its operand in memory
 * lies. */
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
    instruction i = { .op = p[3],
                      .prefix = p[2] & 3,
                      .reg = p[4] >> 3 & 7,
                      .rm = p[4] & 7,
                      .vvvv = ~p[2] >> 3 & 15,
                      .memory = p[4] >> 6 != 3,
                      .length = 5 };
    if (i.memory)
        find_operand(regs, p, p[1] & 0x40 ? 0 : 8, p[1] & 0x20 ? 0 : 8, &i);
    return i;
}

/* ---- a configuration that the CPU has ---- */

/* The configuration in a saved state (struct _xstate of Linux), or NULL: no instruction has loaded one. */
static const oct_tiles_shape *saved_configuration(const void *state, uint32_t at)
{
    enum { SOFTWARE = 464, SIZE = SOFTWARE + 16, PRESENT = 512, MAGIC = 0x46505853, CONFIGURATION = 1 << 17 };
    const uint8_t *p = state;
    uint32_t magic, size;
    uint64_t present;
    if (!p || !at)
        return NULL;
    memcpy(&magic, p + SOFTWARE, sizeof magic);
    memcpy(&size, p + SIZE, sizeof size);
    memcpy(&present, p + PRESENT, sizeof present);
    return magic == MAGIC && at + sizeof(oct_tiles_shape) <= size && present & CONFIGURATION ? (const void *)(p + at)
                                                                                             : NULL;
}

static _Thread_local bool native; /* the configuration is the CPU's */

/* Linux lets every process load a configuration and end it, on a CPU that has tiles; what uses a tile is illegal until
 * the process has asked for them, which this one does not. So the configuration may be known to the CPU alone. (Loading
 * the same one again is not seen, and leaves the tiles in C as they were: kernels fill a tile before they add to
 * it.) */
static void follow_cpu(const void *state, uint32_t at)
{
    const oct_tiles_shape *shape = saved_configuration(state, at);
    if (shape ? memcmp(shape, &oct_portable.shape, sizeof *shape) != 0 : native)
        oct_portable_tiles(shape);
    native = shape != NULL;
}

/* ---- one instruction ---- */

static void execute(const instruction *i)
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

/* at: where a saved state keeps the tiles' configuration; 0: nowhere. */
static void step(mcontext_t *m, uint32_t at)
{
    const instruction i = decode(m->gregs);
    follow_cpu(m->fpregs, at);
    execute(&i);
    m->gregs[REG_RIP] += (greg_t)i.length;
}

#endif
