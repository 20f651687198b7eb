/* lib/kernels/cost.c -- the table of costs, and the choice by it. */
#include "kernels/cost.h"

#include "kernels/cpu.h"

#include <string.h>

typedef struct cost {
    const char *class, *record;
    double term[OCT_COST_TERMS];
} cost;

#define OCT_COST(class, record, call, tile, narrow, row, step, row_step) { class, record, { call, tile, narrow, row, step, row_step } },
static const cost costs[] = {
#include "kernels/costs.inc"
};
#undef OCT_COST

static const char *wanted;
static double *wanted_terms;

void oct_choice_want(const char *name, double terms[OCT_COST_TERMS])
{
    wanted = name;
    wanted_terms = terms;
}

const char *oct_cost_class(void)
{
    return oct_isa_name(oct_isa_detect());
}

/* Levels between two classes. */
static size_t distance(const char *a, const char *b)
{
    size_t at[2] = { 0 };
    for (size_t i = 0; oct_isa_level(i); i++) {
        at[0] = strcmp(a, oct_isa_level(i)) == 0 ? i : at[0];
        at[1] = strcmp(b, oct_isa_level(i)) == 0 ? i : at[1];
    }
    return at[0] > at[1] ? at[0] - at[1] : at[1] - at[0];
}

/* The line of a record that was measured on the class nearest to this CPU's; NULL: on none. */
static const cost *line_of(const char *name)
{
    const cost *best = NULL;
    size_t least = 0;
    for (size_t i = 0; i < OCT_COUNT(costs); i++)
        if (strcmp(costs[i].record, name) == 0) {
            const size_t far = distance(costs[i].class, oct_cost_class());
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

void oct_choice_offer(oct_choice *p, const void *record, const char *name, const oct_extent *e, oct_cost_tile t)
{
    const bool is_wanted = wanted && strcmp(name, wanted) == 0;
    const cost *line = line_of(name);
    double terms[OCT_COST_TERMS], sum = line ? e->more : 0;
    count_terms(e, t, terms);
    for (size_t i = 0; i < OCT_COST_TERMS && line; i++)
        sum += terms[i] * line->term[i];
    if (is_wanted && wanted_terms)
        memcpy(wanted_terms, terms, sizeof terms);
    if (p->wanted || (!is_wanted && p->cost > 0 && (!line || sum > p->cost)))
        return;
    *p = (oct_choice){ record, sum, is_wanted };
}
