/* lib/kernels/qgemm/qchain.c -- plans chains of quads for one panel and writes them. */
#include "kernels/qgemm/qchain.h"

#include "base/mem.h"

#include <string.h>

enum { LIMIT = 128, COLUMNS = OCT_QCHAIN_COLUMNS, LOADS = 4 * COLUMNS, WINDOW = OCT_QCHAIN_WINDOW };

/* Times on a Zen 4 core (the loop: on a Zen 3), in picoseconds for 4 rows (docs/kernels.md): a chain of 4, 3, 2, 1 quads, natural then shuffled;
 * a quad of the plain panel; the loop over chains of one kind. Only the choice of the faster form depends on them. */
static const uint32_t chain_cost[OCT_QCHAIN_KINDS] = { 1640, 1280, 910, 550, 2040, 1590, 1130, 670 };
enum { PLAIN_COST = 810, LOOP_COST = 600 };

typedef struct quad {
    int16_t k[4];    /* of the segment, or -1: a zero weight */
    int32_t offset;
    uint8_t pick[4];
    uint8_t load[LOADS]; /* of each 16-bit lane: positive weights, then negative ones, at most LIMIT */
    uint32_t weight;     /* heavy ones are chained first */
    bool shuffled;
} quad;

typedef struct chain {
    uint8_t room[LOADS]; /* what its lanes still take */
    uint16_t quad[OCT_QCHAIN_LONGEST];
    uint8_t len;
    bool shuffled;
} chain;

/* Values of k of one tap that are planned together. */
typedef struct segment {
    size_t k0, n, kc; /* n of them from k0; kc in the tap */
    int8_t w[OCT_QCHAIN_DEPTH][COLUMNS];
    uint8_t load[OCT_QCHAIN_DEPTH][2][COLUMNS]; /* positive and negative part of each weight */
    quad quads[OCT_QCHAIN_QUADS];
    chain chains[OCT_QCHAIN_QUADS];
    size_t n_quads, n_chains;
} segment;

bool oct_qchain_size(size_t taps, size_t kc, size_t *bytes)
{
    /* An eighth more quads than k need: where more must be split in two, plain is faster. */
    const size_t quads = (kc + 3) / 4, room = quads + quads / 8 + 1, segments = (kc + OCT_QCHAIN_DEPTH - 1) / OCT_QCHAIN_DEPTH;
    size_t all;
    if (kc > SIZE_MAX / 1024 ||
        !oct_mul_size(taps, room * (64 + sizeof(oct_qchain_quad)) + segments * (sizeof(oct_qchain_segment) + 32), &all) ||
        all > SIZE_MAX / 2)
        return false;
    *bytes = (sizeof(oct_qchain_panel) + all + 63) / 64 * 64;
    return true;
}

/* Sixteen loads at a time; the compiler knows a register for them on every CPU. */
typedef uint8_t v16 __attribute__((vector_size(16)));
typedef uint16_t h8 __attribute__((vector_size(16)));

static inline v16 load16(const uint8_t *p)
{
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline v16 larger(v16 a, v16 b)
{
    const v16 m = (v16)(a > b);
    return (a & m) | (b & ~m);
}

/* a + b, at most 255. */
static inline v16 add_up(v16 a, v16 b)
{
    const v16 sum = a + b;
    return sum | (v16)(sum < a);
}

static uint32_t largest(v16 v)
{
    uint8_t lane[16];
    uint32_t most = 0;
    memcpy(lane, &v, sizeof lane);
    for (size_t i = 0; i < sizeof lane; i++)
        most = lane[i] > most ? lane[i] : most;
    return most;
}

/* Whether no load is above its room; n is a multiple of 16. */
static inline bool fits(const uint8_t *load, const uint8_t *room, size_t n)
{
    v16 over = { 0 };
    for (size_t i = 0; i < n; i += sizeof over)
        over |= (v16)(load16(load + i) > load16(room + i));
    uint64_t half[2];
    memcpy(half, &over, sizeof half);
    return (half[0] | half[1]) == 0;
}

static inline v16 load_of(const segment *s, int k, size_t sign)
{
    return k < 0 ? (v16){ 0 } : load16(s->load[k][sign]);
}

/* Fills the loads; false when a pair is beyond the limit. */
static bool weigh(const segment *s, quad *q)
{
    v16 most = { 0 };
    h8 sums = { 0 };
    for (size_t i = 0; i < 4; i++) { /* pairs of positive, then negative weights */
        const v16 sum = add_up(load_of(s, q->k[i / 2 * 2], i % 2), load_of(s, q->k[i / 2 * 2 + 1], i % 2));
        memcpy(q->load + i * COLUMNS, &sum, sizeof sum);
        most = larger(most, sum);
        sums += ((h8)sum & 255) + ((h8)sum >> 8);
    }
    uint32_t total = 0;
    for (size_t i = 0; i < 8; i++)
        total += sums[i];
    const uint32_t heaviest = largest(most);
    q->weight = heaviest << 16 | total;
    return heaviest <= LIMIT;
}

/* The natural quad of the values of k from `at`; where fewer than 4 are left, it ends with the row. */
static quad natural(const segment *s, size_t at)
{
    const size_t have = s->n - at < 4 ? s->n - at : 4;
    quad q = { .offset = (int32_t)(s->k0 + at - (4 - have)) };
    for (size_t i = 0; i < 4; i++)
        q.k[i] = (int16_t)(i < 4 - have ? -1 : (int)(at + i - (4 - have)));
    return q;
}

/* Pairs of a window: second is -1 where no partner was found. */
typedef struct pairing {
    int16_t pair[WINDOW][2];
    uint32_t load[WINDOW];
    size_t n;
} pairing;

/* Heaviest lane of k and l together; l may be -1. */
static uint32_t together(const segment *s, int k, int l)
{
    return largest(larger(add_up(load_of(s, k, 0), load_of(s, l, 0)), add_up(load_of(s, k, 1), load_of(s, l, 1))));
}

/* Members of a set of WINDOW. */
static inline int count(uint32_t set)
{
    set -= set >> 1 & 0x5555;
    set = (set & 0x3333) + (set >> 2 & 0x3333);
    set = (set + (set >> 4)) & 0x0f0f;
    return (int)((set + (set >> 8)) & 31);
}

/* partners[i]: which of the n values of k may stand in a pair with k[i]. */
static void find_partners(const segment *s, const int16_t *k, size_t n, uint32_t *partners)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t room[2 * COLUMNS];
        partners[i] = 0;
        for (size_t c = 0; c < (size_t)2 * COLUMNS; c++)
            room[c] = (uint8_t)(LIMIT - s->load[k[i]][c / COLUMNS][c % COLUMNS]);
        for (size_t j = 0; j < i; j++)
            if (fits(&s->load[k[j]][0][0], room, (size_t)2 * COLUMNS)) {
                partners[i] |= 1u << j;
                partners[j] |= 1u << i;
            }
    }
}

/* The one of a set that has the fewest partners in `left`. */
static size_t loneliest(uint32_t set, const uint32_t *partners, uint32_t left)
{
    size_t best = WINDOW;
    int least = WINDOW + 1;
    for (; set; set &= set - 1) {
        const size_t i = (size_t)__builtin_ctz(set);
        const int n = count(partners[i] & left);
        best = n < least ? i : best;
        least = n < least ? n : least;
    }
    return best;
}

/* Pairs the n values of k: each time the one with the fewest partners left, and of these the one with the fewest. */
static void match(const segment *s, const int16_t *k, size_t n, pairing *p)
{
    uint32_t partners[WINDOW], left = (1u << n) - 1;
    find_partners(s, k, n, partners);
    for (p->n = 0; left; p->n++) {
        const size_t one = loneliest(left, partners, left);
        left &= ~(1u << one);
        const size_t two = loneliest(left & partners[one], partners, left);
        p->pair[p->n][0] = k[one];
        p->pair[p->n][1] = two == WINDOW ? -1 : k[two];
        p->load[p->n] = together(s, k[one], p->pair[p->n][1]);
        if (two != WINDOW)
            left &= ~(1u << two);
    }
}

/* Quads of the pairs, heavy pairs with heavy ones: light quads make longer chains. */
static void add_pairs(segment *s, size_t at, pairing *p)
{
    for (size_t i = 1; i < p->n; i++)
        for (size_t j = i; j > 0 && p->load[j] > p->load[j - 1]; j--) {
            const uint32_t load = p->load[j];
            int16_t pair[2];
            memcpy(pair, p->pair[j], sizeof pair);
            memcpy(p->pair[j], p->pair[j - 1], sizeof pair);
            memcpy(p->pair[j - 1], pair, sizeof pair);
            p->load[j] = p->load[j - 1];
            p->load[j - 1] = load;
        }
    const size_t begin = s->k0 + at, base = begin + WINDOW > s->kc ? s->kc - WINDOW : begin;
    for (size_t i = 0; i < p->n; i += 2) {
        quad *q = &s->quads[s->n_quads++];
        *q = (quad){ .offset = (int32_t)base, .shuffled = true };
        for (size_t b = 0; b < 4; b++) {
            q->k[b] = i + b / 2 < p->n ? p->pair[i + b / 2][b % 2] : -1;
            q->pick[b] = q->k[b] < 0 ? 0 : (uint8_t)(s->k0 + (size_t)q->k[b] - base);
        }
        weigh(s, q);
    }
}

/* Too short a row for shuffles: an unsafe quad becomes two, each with one weight of every pair. */
static void add_split(segment *s, const quad *q)
{
    for (size_t odd = 0; odd < 2; odd++) {
        quad *half = &s->quads[s->n_quads++];
        *half = *q;
        half->k[1 - odd] = half->k[3 - odd] = -1;
        weigh(s, half);
    }
}

static void plan_window(segment *s, size_t at)
{
    const size_t n = s->n - at < WINDOW ? s->n - at : WINDOW, begin = s->n_quads;
    int16_t rest[WINDOW], all[WINDOW];
    size_t n_rest = 0;
    for (size_t i = 0; i < n; i++)
        all[i] = (int16_t)(at + i);
    for (size_t i = 0; i < n; i += 4) {
        quad q = natural(s, at + i);
        if (weigh(s, &q))
            s->quads[s->n_quads++] = q;
        else if (s->kc < WINDOW)
            add_split(s, &q);
        else
            for (size_t j = i; j < i + 4 && j < n; j++)
                rest[n_rest++] = all[j];
    }
    if (n_rest == 0)
        return;
    pairing p, q;
    match(s, rest, n_rest, &p);
    if (p.n * 2 > n_rest + 1 && n_rest < n) { /* some found no partner: perhaps among all of them */
        match(s, all, n, &q);
        if ((q.n + 1) / 2 < (p.n + 1) / 2 + s->n_quads - begin) {
            s->n_quads = begin;
            p = q;
        }
    }
    add_pairs(s, at, &p);
}

static void read_weights(segment *s, oct_qchain_row row, const void *source, size_t tap)
{
    for (size_t i = 0; i < s->n; i++) {
        row(source, tap, s->k0 + i, s->w[i]);
        for (size_t j = 0; j < COLUMNS; j++) {
            s->load[i][0][j] = (uint8_t)(s->w[i][j] > 0 ? s->w[i][j] : 0);
            s->load[i][1][j] = (uint8_t)(s->w[i][j] < 0 ? -s->w[i][j] : 0);
        }
    }
}

/* Indices of quads, the heaviest first. Shell sort: stable order does not matter, a fixed one does. */
static void sort_quads(const segment *s, uint16_t *order)
{
    for (size_t i = 0; i < s->n_quads; i++)
        order[i] = (uint16_t)i;
    static const size_t gaps[] = { 57, 23, 10, 4, 1 };
    for (size_t g = 0; g < OCT_COUNT(gaps); g++)
        for (size_t i = gaps[g]; i < s->n_quads; i++) {
            const uint16_t v = order[i];
            size_t j = i;
            for (; j >= gaps[g] && s->quads[order[j - gaps[g]]].weight < s->quads[v].weight; j -= gaps[g])
                order[j] = order[j - gaps[g]];
            order[j] = v;
        }
}

/* Each quad joins the first chain with room for it. */
static void plan_chains(segment *s)
{
    uint16_t order[OCT_QCHAIN_QUADS];
    sort_quads(s, order);
    s->n_chains = 0;
    for (size_t i = 0; i < s->n_quads; i++) {
        const quad *q = &s->quads[order[i]];
        size_t at = 0;
        for (; at < s->n_chains; at++) {
            const chain *c = &s->chains[at];
            if (c->len < OCT_QCHAIN_LONGEST && c->shuffled == q->shuffled && fits(q->load, c->room, LOADS))
                break;
        }
        chain *c = &s->chains[at];
        if (at == s->n_chains) {
            s->n_chains++;
            c->len = 0;
            c->shuffled = q->shuffled;
            memset(c->room, LIMIT, sizeof c->room);
        }
        for (size_t j = 0; j < LOADS; j++)
            c->room[j] = (uint8_t)(c->room[j] - q->load[j]);
        c->quad[c->len++] = order[i];
    }
}

static size_t kind_of(const chain *c)
{
    return (size_t)(c->shuffled ? OCT_QCHAIN_LONGEST : 0) + OCT_QCHAIN_LONGEST - c->len;
}

static void write_quad(const segment *s, const quad *q, oct_qchain_quad *at, int8_t *w)
{
    at->offset = q->offset;
    memcpy(at->pick, q->pick, sizeof at->pick);
    static const int8_t zeros[COLUMNS];
    const int8_t *from[4];
    for (size_t b = 0; b < 4; b++)
        from[b] = q->k[b] < 0 ? zeros : s->w[q->k[b]];
    for (size_t j = 0; j < COLUMNS; j++, w += 4) {
        w[0] = from[0][j];
        w[1] = from[1][j];
        w[2] = from[2][j];
        w[3] = from[3][j];
    }
}

/* Returns where the next segment goes, and adds the time it takes. */
static uint8_t *write_segment(const segment *s, uint8_t *to, uint64_t *cost)
{
    oct_qchain_segment *head = (oct_qchain_segment *)(void *)to;
    oct_qchain_quad *at = (oct_qchain_quad *)(void *)(head + 1);
    const size_t table = oct_qchain_table(s->n_quads);
    int8_t *w = (int8_t *)at + table;
    memset(head, 0, (size_t)(w - (int8_t *)head));
    head->weights = (uint32_t)table;
    head->next = (uint32_t)(table + s->n_quads * 64);
    for (size_t kind = 0; kind < OCT_QCHAIN_KINDS; kind++) {
        for (size_t i = 0; i < s->n_chains; i++) {
            const chain *c = &s->chains[i];
            if (kind_of(c) != kind)
                continue;
            head->chains[kind]++;
            for (size_t q = 0; q < c->len; q++, at++, w += 64)
                write_quad(s, &s->quads[c->quad[q]], at, w);
        }
        *cost += (uint64_t)chain_cost[kind] * head->chains[kind] + (head->chains[kind] ? LOOP_COST : 0);
    }
    return (uint8_t *)w;
}

bool oct_qchain_pack(oct_qchain_row row, const void *source, size_t taps, size_t kc, size_t size, void *panel, bool *gain)
{
    if (kc < 4 || kc > INT32_MAX)
        return false;
    segment s = { .kc = kc };
    oct_qchain_panel *head = panel;
    uint8_t *to = (uint8_t *)(head + 1);
    const uint8_t *end = (const uint8_t *)panel + size;
    uint64_t cost = 0;
    for (size_t t = 0; t < taps; t++)
        for (s.k0 = 0; s.k0 < kc; s.k0 += s.n) {
            s.n = kc - s.k0 < OCT_QCHAIN_DEPTH ? kc - s.k0 : OCT_QCHAIN_DEPTH;
            s.n_quads = 0;
            read_weights(&s, row, source, t);
            for (size_t at = 0; at < s.n; at += WINDOW)
                plan_window(&s, at);
            if ((size_t)(end - to) < sizeof(oct_qchain_segment) + oct_qchain_table(s.n_quads) + s.n_quads * 64)
                return false;
            plan_chains(&s);
            to = write_segment(&s, to, &cost);
        }
    *head = (oct_qchain_panel){ .chained = 1, .bytes = (uint64_t)(to - (const uint8_t *)panel) };
    *gain = cost < (uint64_t)taps * ((kc + 3) / 4) * PLAIN_COST;
    return true;
}
