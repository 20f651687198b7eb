/* tests/check/check_trapped.c -- the handler of check_kernels_trapped on states as Linux saves them: of a CPU without
 * tiles, where each instruction stops the program, and of one with tiles, where a configuration is loaded and ended
 * without its notice. Needs neither. Prints TAP. */
#define _GNU_SOURCE
#include "trapped_tiles.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT = 2752, STATE = AT + 64, STRIDE = 64 };

/* As GNU as writes them, the operands in memory at rdi, or at rsi and rdx times the row. */
static const uint8_t load_configuration[] = { 0xc4, 0xe2, 0x78, 0x49, 0x07 },
                     load_0[] = { 0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x16 },
                     load_1[] = { 0xc4, 0xe2, 0x7b, 0x4b, 0x0c, 0x16 },
                     load_2[] = { 0xc4, 0xe2, 0x7b, 0x4b, 0x14, 0x16 },
                     product[] = { 0xc4, 0xe2, 0x69, 0x5e, 0xc1 } /* tdpbusd tmm0, tmm1, tmm2 */,
                     store_0[] = { 0xc4, 0xe2, 0x7a, 0x4b, 0x04, 0x17 }, zero_0[] = { 0xc4, 0xe2, 0x7b, 0x49, 0xc0 };

static _Alignas(64) uint8_t state[STATE];

/* What the system saves: the configuration that the CPU has, if any. */
static void save(const oct_tiles_shape *shape)
{
    const uint32_t magic = 0x46505853, size = STATE;
    const uint64_t present = 7 | (shape ? 1 << 17 : 0);
    memset(state, 0, sizeof state);
    memcpy(state + 464, &magic, sizeof magic);
    memcpy(state + 480, &size, sizeof size);
    memcpy(state + 512, &present, sizeof present);
    if (shape)
        memcpy(state + AT, shape, sizeof *shape);
}

/* Whether the instruction is done, and the next one would follow it. */
static bool stopped_at(const uint8_t *code, size_t length, const void *rdi, const void *rsi)
{
    mcontext_t m = { .fpregs = (fpregset_t)(void *)state };
    m.gregs[REG_RIP] = (greg_t)code;
    m.gregs[REG_RDI] = (greg_t)rdi;
    m.gregs[REG_RSI] = (greg_t)rsi;
    m.gregs[REG_RDX] = STRIDE;
    step(&m, AT);
    return m.gregs[REG_RIP] == (greg_t)(code + length);
}

#define STOPPED_AT(code, rdi, rsi) stopped_at(code, sizeof(code), rdi, rsi)

/* One sum of four products, on a tile of m rows: 7 + 1 * 5 + 2 * 6 + 3 * -7 + 200 * 8 = 1603 in each row. */
static bool sums_are_right(int m)
{
    static uint8_t c[1024], a[1024], b[1024], out[1024];
    const int32_t begin = 7;
    memcpy(b, (const int8_t[]){ 5, 6, -7, 8 }, 4);
    for (int i = 0; i < 16; i++) {
        memcpy(c + STRIDE * i, &begin, sizeof begin);
        memcpy(a + STRIDE * i, (const uint8_t[]){ 1, 2, 3, 200 }, 4);
    }
    memset(out, 0, sizeof out);
    bool good = STOPPED_AT(load_0, NULL, c) && STOPPED_AT(load_1, NULL, a) && STOPPED_AT(load_2, NULL, b) &&
                STOPPED_AT(product, NULL, NULL) && STOPPED_AT(store_0, out, NULL);
    for (int i = 0; i < 16; i++) {
        int32_t sum;
        memcpy(&sum, out + STRIDE * i, sizeof sum);
        good &= sum == (i < m ? 1603 : 0);
    }
    return good;
}

static oct_tiles_shape rows(int m)
{
    return (oct_tiles_shape){ .palette = 1, .rows = { (uint8_t)m, (uint8_t)m, 1 }, .bytes = { 4, 4, 4 } };
}

/* Each instruction is illegal, the configuration's as well. */
static bool without_tiles(void)
{
    const oct_tiles_shape three = rows(3), five = rows(5);
    save(NULL);
    return STOPPED_AT(load_configuration, &three, NULL) && sums_are_right(3) &&
           STOPPED_AT(load_configuration, &five, NULL) && sums_are_right(5);
}

/* The CPU loads configurations. */
static bool with_tiles(void)
{
    const oct_tiles_shape three = rows(3), five = rows(5);
    save(&three);
    bool good = sums_are_right(3);
    save(&five);
    good &= sums_are_right(5);
    return good;
}

/* After the CPU has ended a configuration, a tile is a fault. */
static bool ended(void)
{
    int how = 0;
    const oct_tiles_shape three = rows(3);
    save(&three);
    if (!STOPPED_AT(zero_0, NULL, NULL))
        return false;
    save(NULL);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGILL, SIG_DFL);
        STOPPED_AT(zero_0, NULL, NULL);
        _exit(0);
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFSIGNALED(how);
}

int main(void)
{
    static const struct {
        const char *name;
        bool (*holds)(void);
    } checks[] = { { "a CPU that loads no configuration", without_tiles },
                   { "a CPU that loads configurations", with_tiles },
                   { "no configuration again", without_tiles },
                   { "a tile after the end of the CPU's configuration is a fault", ended } };
    int failed = 0;
    printf("1..%zu\n", sizeof checks / sizeof *checks);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const bool good = checks[i].holds();
        failed += !good;
        printf("%sok %zu - trapped tiles: %s\n", good ? "" : "not ", i + 1, checks[i].name);
    }
    return failed != 0;
}
