/* lib/kernels/qgemm/qchain.c -- plans chains of quads for one panel and writes them. */
#include "kernels/qgemm/qchain.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

/* Elements of two vectors in another order; gcc and clang have it by different names. */
#ifdef __clang__
#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){ __VA_ARGS__ })
#endif

enum {
    LIMIT = 128,
    COLUMNS = OCT_QCHAIN_COLUMNS,
    LOADS = OCT_QCHAIN_LOADS,
    CHUNK = OCT_QCHAIN_CHUNK,
    UNIT = OCT_QCHAIN_UNIT,
    NONE = OCT_QCHAIN_DEPTH /* in place of a k: zero weights */
};

/* Times on a Zen 3 core in picoseconds for one row (docs/kernels-lab.md): a unit of each kind, and what a panel takes
 * beside them; a quad of the plain panel, and what that takes; doubled panels: of what 16 columns take. Only the choice
 * of the faster form depends on them. */
static const uint32_t unit_cost[OCT_QCHAIN_KINDS] = { 1870, 2115, 2100, 2350, 2610, 1410, 1510,
                                                      2065, 2305, 2245, 2485, 2665, 1510, 1610 };
enum { CHAINS_COST = 370, PLAIN_QUAD_COST = 900, PLAIN_COST = 900, DOUBLED_PERCENT = 60 };

/* Lengths of the chains of each form, the longest first. */
static const uint8_t forms[OCT_QCHAIN_FORMS][UNIT] = { { 4 },          { 3, 1 }, { 2, 2 }, { 2, 1, 1 },
                                                       { 1, 1, 1, 1 }, { 2 },    { 1, 1 } };

typedef struct quad {
    int16_t k[4]; /* of the segment, or NONE */
    uint32_t at;  /* as oct_qchain_quad.k */
    uint8_t pick[4];
    uint32_t weight; /* heavy ones are chained first */
    bool shuffled;
} quad;

typedef struct chain {
    struct chain *next; /* of the same length, in no unit yet */
    uint16_t quad[UNIT];
    uint8_t len;
    bool shuffled;
} chain;

typedef struct unit {
    uint16_t quad[UNIT]; /* or ZERO: no weights, where none are left */
    uint8_t kind;
} unit;
enum { ZERO = UINT16_MAX };

/* Values of k that are planned together. */
typedef struct segment {
    size_t k0, n;                                   /* n of them from k0 */
    int8_t w[OCT_QCHAIN_DEPTH + 1][COLUMNS];        /* the last one: of NONE */
    uint8_t load[OCT_QCHAIN_DEPTH + 1][2][COLUMNS]; /* positive and negative part of each weight */
    quad quads[OCT_QCHAIN_QUADS];
    uint8_t loads[OCT_QCHAIN_QUADS][LOADS]; /* of each quad's 16-bit lanes: positive weights, then negative ones */
    chain chains[OCT_QCHAIN_QUADS];
    unit units[OCT_QCHAIN_QUADS];
    size_t n_quads, n_chains, n_units, places; /* places: quads of all units, with zeros */
} segment;

bool oct_qchain_size(size_t depth, size_t *bytes)
{
    /* An eighth more quads than k need, and three for the last unit: where more must be split in two, plain is
     * faster. */
    const size_t quads = (depth + 3) / 4, segments = (depth + OCT_QCHAIN_DEPTH - 1) / OCT_QCHAIN_DEPTH,
                 room = quads + quads / 8 + 1 + 3 * segments;
    if (depth > SIZE_MAX / 1024)
        return false;
    *bytes = oct_round_up(sizeof(oct_qchain_panel) + room * (64 + sizeof(oct_qchain_quad)) +
                              segments * (sizeof(oct_qchain_segment) + 32),
                          64);
    return true;
}

/* Sixteen loads at a time; the compiler knows a register for them on every CPU. */
typedef uint8_t v16 __attribute__((vector_size(16)));
typedef int8_t b16 __attribute__((vector_size(16)));
typedef uint16_t h8 __attribute__((vector_size(16)));
typedef uint64_t q2 __attribute__((vector_size(16)));

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

static inline uint32_t largest(v16 v)
{
    v = larger(v, (v16)SHUFFLE(q2, (q2)v, (q2)v, 1, 0));
    v = larger(v, (v16)((q2)v >> 32));
    v = larger(v, (v16)((q2)v >> 16));
    v = larger(v, (v16)((q2)v >> 8));
    return v[0];
}

static inline uint32_t total(h8 v)
{
    v += (h8)SHUFFLE(q2, (q2)v, (q2)v, 1, 0);
    v += (h8)((q2)v >> 32);
    v += (h8)((q2)v >> 16);
    return v[0];
}

static inline bool is_zero(v16 v)
{
    uint64_t half[2];
    memcpy(half, &v, sizeof half);
    return (half[0] | half[1]) == 0;
}

static inline v16 load_of(const segment *s, int k, size_t sign)
{
    return load16(s->load[k][sign]);
}

/* What two values of k load a lane with, by their positive or their negative weights. */
static inline v16 pair_load(const segment *s, const int16_t k[2], size_t sign)
{
    return add_up(load_of(s, k[0], sign), load_of(s, k[1], sign));
}

static inline h8 in_words(v16 v)
{
    return ((h8)v & 255) + ((h8)v >> 8);
}

/* Fills the quad's weight and its loads; false when a pair is beyond the limit. */
static bool weigh(const segment *s, quad *q, uint8_t load[LOADS])
{
    const v16 pairs[4] = { pair_load(s, q->k, 0), pair_load(s, q->k, 1), pair_load(s, q->k + 2, 0),
                           pair_load(s, q->k + 2, 1) };
    memcpy(load, pairs, sizeof pairs);
    const uint32_t heaviest = largest(larger(larger(pairs[0], pairs[1]), larger(pairs[2], pairs[3])));
    q->weight =
        heaviest << 16 | total(in_words(pairs[0]) + in_words(pairs[1]) + in_words(pairs[2]) + in_words(pairs[3]));
    return heaviest <= LIMIT;
}

/* The natural quad of the values of k from `at`. */
static quad natural(const segment *s, size_t at)
{
    quad q = { .at = (uint32_t)(s->k0 + at) };
    for (size_t i = 0; i < 4; i++)
        q.k[i] = (int16_t)(at + i < s->n ? at + i : NONE);
    return q;
}

/* Pairs of a chunk: second is NONE where no partner was found. */
typedef struct pairing {
    int16_t pair[CHUNK][2];
    uint32_t load[CHUNK];
    size_t n;
} pairing;

/* Heaviest lane of k and l together; l may be NONE. */
static uint32_t together(const segment *s, int k, int l)
{
    return largest(larger(add_up(load_of(s, k, 0), load_of(s, l, 0)), add_up(load_of(s, k, 1), load_of(s, l, 1))));
}

/* Members of a set of CHUNK. */
static inline int count(uint32_t set)
{
    static const uint8_t members[16] = { 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4 };
    return members[set & 15] + members[set >> 4 & 15] + members[set >> 8 & 15] + members[set >> 12];
}

/* partners[i]: which of the n values of k may stand in a pair with k[i]. */
static void find_partners(const segment *s, const int16_t *k, size_t n, uint32_t *partners)
{
    const v16 bias = (v16){ 0 } + 128; /* loads as signed numbers in the same order: CPUs compare these at once */
    b16 load[CHUNK][2];
    for (size_t i = 0; i < n; i++) {
        const v16 positive = load_of(s, k[i], 0), negative = load_of(s, k[i], 1);
        const b16 room[2] = { (b16)(LIMIT - positive - bias), (b16)(LIMIT - negative - bias) };
        load[i][0] = (b16)(positive - bias);
        load[i][1] = (b16)(negative - bias);
        partners[i] = 0;
        for (size_t j = 0; j < i; j++)
            if (is_zero((v16)(load[j][0] > room[0]) | (v16)(load[j][1] > room[1]))) {
                partners[i] |= 1u << j;
                partners[j] |= 1u << i;
            }
    }
}

/* The one of a set that has the fewest partners in `left`. */
static size_t loneliest(uint32_t set, const uint32_t *partners, uint32_t left)
{
    size_t best = CHUNK;
    int least = CHUNK + 1;
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
    uint32_t partners[CHUNK], left = (1u << n) - 1;
    find_partners(s, k, n, partners);
    for (p->n = 0; left; p->n++) {
        const size_t one = loneliest(left, partners, left);
        assert(one < CHUNK); /* of a set that is not empty */
        left &= ~(1u << one);
        const size_t two = loneliest(left & partners[one], partners, left);
        p->pair[p->n][0] = k[one];
        p->pair[p->n][1] = two == CHUNK ? NONE : k[two];
        p->load[p->n] = together(s, k[one], p->pair[p->n][1]);
        if (two != CHUNK)
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
    for (size_t i = 0; i < p->n; i += 2) {
        quad *q = &s->quads[s->n_quads];
        *q = (quad){ .at = (uint32_t)(s->k0 + at), .shuffled = true };
        for (size_t b = 0; b < 4; b++) {
            q->k[b] = i + b / 2 < p->n ? p->pair[i + b / 2][b % 2] : NONE;
            q->pick[b] = q->k[b] == NONE ? 0 : (uint8_t)((size_t)q->k[b] - at);
        }
        weigh(s, q, s->loads[s->n_quads++]);
    }
}

static void plan_chunk(segment *s, size_t at)
{
    const size_t n = s->n - at < CHUNK ? s->n - at : CHUNK, begin = s->n_quads;
    int16_t rest[CHUNK], all[CHUNK];
    size_t n_rest = 0;
    for (size_t i = 0; i < n; i++)
        all[i] = (int16_t)(at + i);
    for (size_t i = 0; i < n; i += 4) {
        quad q = natural(s, at + i);
        if (weigh(s, &q, s->loads[s->n_quads]))
            s->quads[s->n_quads++] = q;
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

static void take_weights(segment *s, oct_qchain_read read, const void *source)
{
    typedef int8_t w16 __attribute__((vector_size(16)));
    const w16 none = { 0 };
    w16 w;
    read(source, s->k0, s->n, s->w);
    memset(s->w[NONE], 0, sizeof s->w[NONE]);
    memset(s->load[NONE], 0, sizeof s->load[NONE]);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(&w, s->w[i], sizeof w);
        const w16 below = (w16)(w < none), positive = w & ~below, negative = (w16) - ((v16)w & (v16)below);
        memcpy(s->load[i][0], &positive, sizeof positive);
        memcpy(s->load[i][1], &negative, sizeof negative);
    }
}

/* Indices of quads, the heaviest first; of equally heavy ones those of the larger sum, in steps of 32. */
static void sort_quads(const segment *s, uint8_t *order)
{
    enum { KEYS = 256, STEP = 32 };
    uint16_t light[KEYS + 1] = { 0 },
                          small[KEYS + 1] = { 0 }; /* first how many there are of each key, then where they go */
    uint8_t by_sum[OCT_QCHAIN_QUADS], keys[OCT_QCHAIN_QUADS][2];
    for (size_t i = 0; i < s->n_quads; i++) {
        const uint32_t sum = (s->quads[i].weight & 0xffff) / STEP;
        keys[i][0] = (uint8_t)(KEYS - 1 - (sum < KEYS ? sum : KEYS - 1));
        keys[i][1] = (uint8_t)(KEYS - 1 - (s->quads[i].weight >> 16));
        small[keys[i][0] + 1]++;
        light[keys[i][1] + 1]++;
    }
    for (size_t i = 0; i < KEYS; i++) {
        small[i + 1] = (uint16_t)(small[i + 1] + small[i]);
        light[i + 1] = (uint16_t)(light[i + 1] + light[i]);
    }
    for (size_t i = 0; i < s->n_quads; i++)
        by_sum[small[keys[i][0]]++] = (uint8_t)i;
    for (size_t i = 0; i < s->n_quads; i++)
        order[light[keys[by_sum[i]][1]]++] = by_sum[i];
}

static bool fits(const uint8_t *load, const uint8_t *room)
{
    bool over = false;
    for (size_t i = 0; i < LOADS; i++)
        over |= load[i] > room[i];
    return !over;
}

static int32_t suits(const uint8_t *load, const uint8_t *room)
{
    int32_t sum = 0;
    for (size_t i = 0; i < LOADS; i++)
        sum += load[i] * (room[i] - 32 - (load[i] + 1) / 2);
    return sum;
}

static size_t plain_best(const uint8_t loads[][LOADS], const uint8_t room[LOADS], uint8_t *list, size_t *from, size_t n)
{
    uint8_t fit[OCT_QCHAIN_MOST];
    size_t at = *from, kept = 0, best = 0;
    int32_t most = INT32_MIN;
    for (; at < n && kept < OCT_QCHAIN_MOST; at++) {
        const uint8_t *load = loads[list[at]];
        if (!fits(load, room))
            continue;
        const int32_t v = suits(load, room);
        best = v > most ? kept : best;
        most = v > most ? v : most;
        fit[kept++] = list[at];
    }
    *from = at - kept;
    memcpy(list + *from, fit, kept);
    return kept ? *from + best : n;
}

oct_qchain_best_fn oct_qchain_best_select(oct_isa have)
{
#if defined(OCT_KERNELS_X86)
    if (have & OCT_ISA_AVX2)
        return oct_qchain_best__avx2;
#endif
    return plain_best;
}

/* Adds a quad to a chain whose lanes still take `room`. */
static void add_quad(const segment *s, chain *c, uint8_t room[LOADS], uint8_t i)
{
    for (size_t j = 0; j < LOADS; j += sizeof(v16)) {
        const v16 left = load16(room + j) - load16(s->loads[i] + j);
        memcpy(room + j, &left, sizeof left);
    }
    c->quad[c->len++] = i;
}

/* Quads that are in no chain yet, the heaviest first. */
typedef struct queue {
    uint8_t quad[OCT_QCHAIN_QUADS];
    size_t from, n;
} queue;

static void drop(queue *q, uint8_t i)
{
    uint8_t *at = memchr(q->quad + q->from, i, q->n - q->from);
    memmove(at, at + 1, (size_t)(q->quad + q->n - at) - 1);
    q->n--;
}

/* Makes a chain of the first quad and those that suit it best. */
static void plan_chain(segment *s, oct_qchain_best_fn find_best, queue *left, chain *c)
{
    uint8_t list[OCT_QCHAIN_QUADS], room[LOADS];
    size_t from = 0, best;
    memset(room, LIMIT, sizeof room);
    *c = (chain){ .shuffled = s->quads[left->quad[left->from]].shuffled };
    add_quad(s, c, room, left->quad[left->from++]);
    const size_t n = left->n - left->from;
    memcpy(list, left->quad + left->from, n);
    while (c->len < UNIT && (best = find_best(s->loads, room, list, &from, n)) < n) {
        add_quad(s, c, room, list[best]);
        drop(left, list[best]);
        memmove(list + from + 1, list + from, best - from);
        from++;
    }
}

/* The heaviest quad that is left begins a chain, those of its kind that suit it best join it. */
static void plan_chains(segment *s, oct_qchain_best_fn find_best)
{
    uint8_t order[OCT_QCHAIN_QUADS], place[OCT_QCHAIN_QUADS]; /* place: of each quad in the order */
    queue natural, shuffled;
    natural.from = natural.n = shuffled.from = shuffled.n = 0;
    sort_quads(s, order);
    for (size_t i = 0; i < s->n_quads; i++) {
        queue *q = s->quads[order[i]].shuffled ? &shuffled : &natural;
        q->quad[q->n++] = order[i];
        place[order[i]] = (uint8_t)i;
    }
    for (s->n_chains = 0; natural.from < natural.n || shuffled.from < shuffled.n;) {
        const bool first =
            shuffled.from == shuffled.n ||
            (natural.from < natural.n && place[natural.quad[natural.from]] < place[shuffled.quad[shuffled.from]]);
        plan_chain(s, find_best, first ? &natural : &shuffled, &s->chains[s->n_chains++]);
    }
}

/* Chains that are not in a unit yet, by length. */
typedef struct stock {
    chain *first[UNIT + 1];
    size_t quads;
} stock;

static void add_stock(stock *t, chain *c)
{
    c->next = t->first[c->len];
    t->first[c->len] = c;
    t->quads += c->len;
}

/* Quads of the longest chain that is not above `most`, or of a part of the shortest one; returns how many. */
static size_t take(stock *t, size_t most, uint16_t *quads)
{
    size_t len = most;
    while (len > 0 && !t->first[len])
        len--;
    for (size_t i = most + 1; len == 0 && i <= UNIT; i++)
        len = t->first[i] ? i : 0;
    if (len == 0)
        return 0;
    chain *c = t->first[len];
    t->first[len] = c->next;
    t->quads -= len;
    const size_t taken = len < most ? len : most;
    c->len = (uint8_t)(len - taken);
    memcpy(quads, c->quad + c->len, taken * sizeof *quads);
    if (c->len)
        add_stock(t, c);
    return taken;
}

static size_t form_of(const uint8_t lengths[UNIT])
{
    size_t f = 0;
    while (memcmp(forms[f], lengths, UNIT) != 0)
        f++;
    return f;
}

static void add_unit(segment *s, stock *t, bool shuffled)
{
    unit *u = &s->units[s->n_units++];
    uint8_t lengths[UNIT] = { 0 };
    const size_t size = t->quads > UNIT / 2 ? UNIT : UNIT / 2;
    size_t n = 0;
    for (size_t i = 0; n < size && t->quads; i++) {
        lengths[i] = (uint8_t)take(t, size - n, u->quad + n);
        n += lengths[i];
    }
    /* Zeros may be in any chain. The form wants them in the first. */
    memmove(u->quad + size - n, u->quad, n * sizeof *u->quad);
    for (size_t i = 0; i < size - n; i++)
        u->quad[i] = ZERO;
    lengths[0] = (uint8_t)(lengths[0] + size - n);
    u->kind = (uint8_t)(form_of(lengths) + (shuffled ? OCT_QCHAIN_FORMS : 0));
    s->places += size;
}

/* What is left of natural chains and fills no unit goes with shuffled ones. */
static void plan_units(segment *s)
{
    stock natural = { .quads = 0 }, shuffled = { .quads = 0 };
    for (size_t i = 0; i < s->n_chains; i++)
        add_stock(s->chains[i].shuffled ? &shuffled : &natural, &s->chains[i]);
    s->n_units = s->places = 0;
    while (natural.quads >= UNIT || (natural.quads && shuffled.quads == 0))
        add_unit(s, &natural, false);
    for (size_t len = 1; len <= UNIT; len++)
        for (chain *c = natural.first[len], *next; c; c = next) {
            next = c->next;
            add_stock(&shuffled, c);
        }
    while (shuffled.quads)
        add_unit(s, &shuffled, true);
}

/* Bytes of a and b in turn, from their first half and from their second. */
static inline v16 low_turns(v16 a, v16 b)
{
    return SHUFFLE(v16, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline v16 high_turns(v16 a, v16 b)
{
    return SHUFFLE(v16, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* Likewise of their 16-bit words. */
static inline v16 low_words(v16 a, v16 b)
{
    return (v16)SHUFFLE(h8, (h8)a, (h8)b, 0, 8, 1, 9, 2, 10, 3, 11);
}

static inline v16 high_words(v16 a, v16 b)
{
    return (v16)SHUFFLE(h8, (h8)a, (h8)b, 4, 12, 5, 13, 6, 14, 7, 15);
}

static void write_quad(const segment *s, const quad *q, bool shuffled, oct_qchain_quad *at, int8_t *w)
{
    v16 from[4];
    at->k = shuffled ? q->at / CHUNK * CHUNK : q->at;
    for (size_t b = 0; b < 4; b++) {
        at->pick[b] = q->shuffled ? q->pick[b] : (uint8_t)(q->at % CHUNK + b);
        memcpy(&from[b], s->w[q->k[b]], sizeof from[b]);
    }
    const v16 low[2] = { low_turns(from[0], from[1]), low_turns(from[2], from[3]) },
              high[2] = { high_turns(from[0], from[1]), high_turns(from[2], from[3]) },
              columns[4] = { low_words(low[0], low[1]), high_words(low[0], low[1]), low_words(high[0], high[1]),
                             high_words(high[0], high[1]) };
    memcpy(w, columns, sizeof columns);
}

static void write_unit(const segment *s, const unit *u, oct_qchain_quad *at, int8_t *w)
{
    const quad zero = { .k = { NONE, NONE, NONE, NONE }, .at = (uint32_t)s->k0 };
    for (size_t q = 0; q < oct_qchain_quads(u->kind); q++)
        write_quad(s, u->quad[q] == ZERO ? &zero : &s->quads[u->quad[q]], u->kind >= OCT_QCHAIN_FORMS, at + q,
                   w + q * 4 * COLUMNS);
}

static size_t segment_bytes(const segment *s)
{
    return sizeof(oct_qchain_segment) + oct_qchain_table(s->places) + s->places * 4 * COLUMNS;
}

/* Returns the time it takes. */
static uint64_t write_segment(const segment *s, uint8_t *to)
{
    oct_qchain_segment *head = (oct_qchain_segment *)(void *)to;
    oct_qchain_quad *at = (oct_qchain_quad *)(void *)(head + 1);
    const size_t table = oct_qchain_table(s->places);
    int8_t *w = (int8_t *)at + table;
    uint64_t cost = 0;
    memset(head, 0, (size_t)(w - (int8_t *)head));
    head->weights = (uint16_t)table;
    head->next = (uint16_t)(table + s->places * 4 * COLUMNS);
    for (size_t kind = 0; kind < OCT_QCHAIN_KINDS; kind++)
        for (size_t i = 0; i < s->n_units; i++)
            if (s->units[i].kind == kind) {
                write_unit(s, &s->units[i], at, w);
                at += oct_qchain_quads(kind);
                w += oct_qchain_quads(kind) * 4 * COLUMNS;
                head->units[kind]++;
                cost += unit_cost[kind];
            }
    return cost;
}

bool oct_qchain_pack(oct_qchain_read read, const void *source, size_t depth, bool doubled, size_t size, void *panel,
                     uint64_t *cost)
{
    if (depth > UINT32_MAX)
        return false;
    segment s; /* is large: setting all of it would take as long as planning a short panel */
    oct_qchain_panel *head = panel;
    uint8_t *to = (uint8_t *)(head + 1);
    const uint8_t *end = (const uint8_t *)panel + size;
    const oct_qchain_best_fn find_best = oct_qchain_best_select(oct_isa_active());
    *cost = 0;
    bool shuffled = false;
    for (s.k0 = 0; s.k0 < depth; s.k0 += s.n) {
        s.n = depth - s.k0 < OCT_QCHAIN_DEPTH ? depth - s.k0 : OCT_QCHAIN_DEPTH;
        s.n_quads = 0;
        take_weights(&s, read, source);
        for (size_t at = 0; at < s.n; at += CHUNK)
            plan_chunk(&s, at);
        plan_chains(&s, find_best);
        plan_units(&s);
        if ((size_t)(end - to) < segment_bytes(&s))
            return false;
        *cost += write_segment(&s, to);
        for (size_t i = 0; i < s.n_units; i++)
            shuffled |= s.units[i].kind >= OCT_QCHAIN_FORMS;
        to += segment_bytes(&s);
    }
    *cost = (doubled ? *cost / 100 * DOUBLED_PERCENT : *cost) + CHAINS_COST;
    *head = (oct_qchain_panel){
        .chained = 1, .doubled = doubled, .shuffled = shuffled, .bytes = (uint64_t)(to - (const uint8_t *)panel)
    };
    return true;
}

uint64_t oct_qchain_plain_cost(size_t depth)
{
    return (uint64_t)((depth + 3) / 4) * PLAIN_QUAD_COST + PLAIN_COST;
}

typedef uint8_t chunk __attribute__((vector_size(OCT_QCHAIN_CHUNK)));

static inline uint64_t bytes_at(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

typedef uint64_t words __attribute__((vector_size(OCT_QCHAIN_CHUNK)));

/* n < 16 bytes, then zeros: a call of memcpy, which the compiler makes of a length it does not know, takes longer than
 * all of the row. Two words overlap where no multiple fits. They meet in a register: a load would wait for both to be
 * stored. */
static inline chunk part_at(const uint8_t *p, size_t n)
{
    words v = { 0, 0 };
    if (n > 8)
        v = (words){ bytes_at(p, 8), bytes_at(p + n - 8, 8) >> 8 * (16 - n) };
    else if (n == 8)
        v[0] = bytes_at(p, 8);
    else if (n >= 4)
        v[0] = bytes_at(p, 4) | bytes_at(p + n - 4, 4) << 8 * (n - 4);
    else if (n >= 2)
        v[0] = bytes_at(p, 2) | bytes_at(p + n - 2, 2) << 8 * (n - 2);
    else
        v[0] = bytes_at(p, n);
    return (chunk)v;
}

static inline void copy_chunk(const uint8_t *from, size_t n, chunk flip, uint8_t *to)
{
    chunk v;
    if (n >= CHUNK)
        memcpy(&v, from, sizeof v);
    else
        v = part_at(from, n);
    v ^= flip;
    memcpy(to, &v, sizeof v);
}

/* A line of the cache is used up at once, as rows may drive each other from it: `left` values of k, or as many of them
 * as it holds. */
static inline void copy_line(const uint8_t *from, size_t left, chunk flip, size_t gap, uint8_t *to)
{
    enum { LINE = 4 * CHUNK };
    if (left >= LINE) {
        copy_chunk(from, CHUNK, flip, to);
        copy_chunk(from + CHUNK, CHUNK, flip, to + gap);
        copy_chunk(from + 2 * CHUNK, CHUNK, flip, to + 2 * gap);
        copy_chunk(from + 3 * CHUNK, CHUNK, flip, to + 3 * gap);
        return;
    }
    for (size_t w = 0; w < left; w += CHUNK)
        copy_chunk(from + w, left - w, flip, to + w / CHUNK * gap);
}

void oct_qchain_copy(size_t rows, size_t mr, size_t taps, size_t n, const uint8_t *const *table, uint8_t flip,
                     uint8_t *to)
{
    enum { LINE = 4 * CHUNK };
    const chunk f = (chunk){ 0 } + flip;
    const size_t gap = rows * CHUNK;
    for (size_t t = 0; t < taps; t++, to += oct_round_up(n, CHUNK) * rows)
        for (size_t k = 0; k < n; k += LINE) {
            const uint8_t *const *a = table + t * mr;
            for (size_t i = 0; i < rows; i += mr, a += taps * mr)
                for (size_t j = 0; j < mr && i + j < rows; j++)
                    copy_line(a[j] + k, n - k, f, gap, to + k * rows + (i + j) * CHUNK);
        }
}
