/* lib/kernels/cost.c -- the table of costs, and the choice by it. */
#include "kernels/cost.h"

#include "kernels/cpu.h"

#include <stdatomic.h>
#include <string.h>

#define OCT_COST(class, record, call, tile, narrow, row, step, row_step)
#define OCT_COSTS_OF(id, class, machine, date) OF_##id,
enum {
#include "kernels/costs.inc"
};
#undef OCT_COSTS_OF

#define OCT_COSTS_OF(id, class, machine, date) { class, machine, date },
static const oct_cost_origin origins[] = {
#include "kernels/costs.inc"
};
#undef OCT_COSTS_OF
#undef OCT_COST

typedef struct cost {
    size_t origin;
    const char *record;
    double term[OCT_COST_TERMS];
} cost;

#define OCT_COSTS_OF(id, class, machine, date)
#define OCT_COST(id, record, call, tile, narrow, row, step, row_step) \
    { OF_##id, record, { call, tile, narrow, row, step, row_step } },
static const cost costs[] = {
#include "kernels/costs.inc"
};
#undef OCT_COST
#undef OCT_COSTS_OF

static const char *wanted, *assumed;
static double *wanted_terms;

void oct_choice_want(const char *name, double terms[OCT_COST_TERMS])
{
    wanted = name;
    wanted_terms = terms;
}

void oct_cost_assume(const char *class)
{
    assumed = class;
}

/* Classes: each level, by maker. */
static const char *const classes[][OCT_CPU_MAKERS] = {
    { "scalar", "scalar-amd", "scalar-zen4" },
#define OCT_LEVEL(bit, name, below) { name, name "-amd", name "-zen4" },
#include "kernels/isas.inc"
#undef OCT_LEVEL
};

/* Where a class stands: level * OCT_CPU_MAKERS + maker. */
static size_t place_of(const char *class)
{
    for (size_t i = 0; i < OCT_CPU_MAKERS * OCT_COUNT(classes); i++)
        if (strcmp(class, classes[i / OCT_CPU_MAKERS][i % OCT_CPU_MAKERS]) == 0)
            return i;
    return 0;
}

/* cpuid is slow: asked once. Threads that race store the same value. */
static size_t place_of_this(void)
{
    static atomic_size_t known; /* plus 1 */
    if (assumed)
        return place_of(assumed);
    size_t place = atomic_load_explicit(&known, memory_order_relaxed);
    if (!place) {
        place = place_of(oct_isa_name(oct_isa_detect())) + oct_cpu_made_by() + 1;
        atomic_store_explicit(&known, place, memory_order_relaxed);
    }
    return place - 1;
}

const char *oct_cost_class(void)
{
    const size_t place = place_of_this();
    return classes[place / OCT_CPU_MAKERS][place % OCT_CPU_MAKERS];
}

/* How unlike two classes are: levels between them count before the maker. */
static size_t distance(size_t a, size_t b)
{
    const size_t high = a > b ? a : b, low = a > b ? b : a;
    const size_t levels = high / OCT_CPU_MAKERS - low / OCT_CPU_MAKERS;
    const size_t m = a % OCT_CPU_MAKERS, n = b % OCT_CPU_MAKERS;
    return OCT_CPU_MAKERS * levels + (m > n ? m - n : n - m);
}

const oct_cost_origin *oct_cost_measured(void)
{
    const size_t own = place_of_this(), arm = place_of("neon");
    const oct_cost_origin *best = NULL;
    for (size_t i = 0; i < OCT_COUNT(origins); i++) {
        const size_t place = place_of(origins[i].class);
        if ((place < arm) == (own < arm) && (!best || distance(place, own) < distance(place_of(best->class), own)))
            best = &origins[i];
    }
    return best;
}

/* The line of a record that was measured on the class nearest to this CPU's; NULL: on none. */
static const cost *line_of(const char *name)
{
    const cost *best = NULL;
    size_t least = 0;
    for (size_t i = 0; i < OCT_COUNT(costs); i++)
        if (strcmp(costs[i].record, name) == 0) {
            const size_t far = distance(place_of(origins[costs[i].origin].class), place_of_this());
            if (!best || far < least) {
                best = &costs[i];
                least = far;
            }
        }
    return best;
}

static void count_terms(const oct_extent *e, oct_cost_tile t, double terms[OCT_COST_TERMS])
{
    enum { USUAL = 128 }; /* rows, where they are unknown */
    const size_t rows = e->rows ? e->rows : USUAL;
    const double parts = (double)((e->n + t.unit - 1) / t.unit * t.unit) / (double)t.nr;
    const double high = (double)((rows + t.mr - 1) / t.mr), steps = (double)((e->depth + t.kr - 1) / t.kr);
    terms[0] = 1;
    terms[1] = high * (double)(e->n / t.nr);
    terms[2] = e->n % t.nr ? high : 0;
    terms[3] = (double)rows * parts;
    terms[4] = high * parts * steps;
    terms[5] = (double)rows * parts * steps;
}

static double sum_of(const cost *line, const double terms[OCT_COST_TERMS])
{
    double sum = 0;
    for (size_t i = 0; i < OCT_COST_TERMS; i++)
        sum += terms[i] * line->term[i];
    return sum;
}

double oct_cost_of(const char *name, const oct_extent *e, oct_cost_tile t)
{
    const cost *line = line_of(name);
    double terms[OCT_COST_TERMS];
    count_terms(e, t, terms);
    return line ? e->more + sum_of(line, terms) : 0;
}

bool oct_choice_is_better(const oct_choice *b, const oct_choice *a)
{
    if (!a->record || !b->record)
        return !a->record;
    return !a->wanted && (b->wanted || (b->cost > 0 && (a->cost <= 0 || b->cost < a->cost)));
}

void oct_choice_offer(oct_choice *p, const void *record, const char *name, const oct_extent *e, oct_cost_tile t)
{
    const bool is_wanted = wanted && strcmp(name, wanted) == 0;
    const cost *line = line_of(name);
    double terms[OCT_COST_TERMS];
    count_terms(e, t, terms);
    const double sum = line ? e->more + sum_of(line, terms) : 0;
    if (is_wanted && wanted_terms)
        memcpy(wanted_terms, terms, sizeof terms);
    if (p->wanted || (!is_wanted && p->cost > 0 && (!line || sum > p->cost)))
        return;
    *p = (oct_choice){ record, name, sum, is_wanted };
}
