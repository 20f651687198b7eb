/* tests/check/fit.c -- least squares, and weights for what they choose wrongly. */
#include "fit.h"

#include <stdio.h>
#include <string.h>

enum { TERMS = OCT_COST_TERMS };

static size_t record_of(fit *f, const char *name)
{
    size_t at = 0;
    while (at < f->n_records && strcmp(f->records[at].name, name) != 0)
        at++;
    if (at == FIT_RECORDS)
        return at;
    f->records[at].name = name;
    f->n_records += at == f->n_records;
    return at;
}

bool fit_add(fit *f, size_t product, const char *name, const double terms[TERMS], double seconds)
{
    const size_t record = record_of(f, name);
    if (record == FIT_RECORDS || f->n == FIT_SAMPLES)
        return false;
    fit_sample *s = &f->samples[f->n++];
    *s = (fit_sample){ .product = product, .record = record, .seconds = seconds, .weight = 1 };
    memcpy(s->terms, terms, sizeof s->terms);
    return true;
}

/* Sums over a record's samples of products of terms / seconds, and of each. */
typedef struct sums {
    double square[TERMS][TERMS], right[TERMS];
} sums;

/* Solves for the terms of the set by elimination; the others are 0. False where one is not above 0. */
static bool solve(const sums *f, unsigned set, double x[TERMS])
{
    double a[TERMS][TERMS + 1];
    for (size_t i = 0; i < TERMS; i++) {
        for (size_t j = 0; j < TERMS; j++)
            a[i][j] = set >> i & set >> j & 1 ? f->square[i][j] : i == j;
        a[i][TERMS] = set >> i & 1 ? f->right[i] : 0;
    }
    for (size_t k = 0; k < TERMS; k++)
        for (size_t i = 0; i < TERMS; i++) {
            const double by = i == k ? 0 : a[i][k] / a[k][k];
            for (size_t j = k; j <= TERMS && i != k; j++)
                a[i][j] -= by * a[k][j];
        }
    bool positive = true;
    for (size_t i = 0; i < TERMS; i++) {
        x[i] = a[i][TERMS] / a[i][i];
        positive &= !(set >> i & 1) || x[i] > 0;
    }
    return positive;
}

/* The best costs without negative ones, of all sets of terms. */
static void fit_record(const fit *f, size_t record, double cost[TERMS])
{
    sums s = { 0 };
    double least = 0;
    for (const fit_sample *p = f->samples; p < f->samples + f->n; p++)
        for (size_t i = 0; i < TERMS && p->record == record; i++) {
            for (size_t j = 0; j < TERMS; j++)
                s.square[i][j] += p->weight * p->terms[i] / p->seconds * p->terms[j] / p->seconds;
            s.right[i] += p->weight * p->terms[i] / p->seconds;
        }
    memset(cost, 0, TERMS * sizeof *cost);
    for (unsigned set = 1; set < 1u << TERMS; set++) {
        double x[TERMS], error = 0;
        if (!solve(&s, set, x))
            continue;
        for (size_t i = 0; i < TERMS; i++) {
            for (size_t j = 0; j < TERMS; j++)
                error += x[i] * x[j] * s.square[i][j];
            error -= 2 * x[i] * s.right[i];
        }
        if (error < least) {
            least = error;
            memcpy(cost, x, sizeof x);
        }
    }
}

static double expected(const fit *f, const fit_sample *p)
{
    double sum = 0;
    for (size_t i = 0; i < TERMS; i++)
        sum += p->terms[i] * f->records[p->record].cost[i];
    return sum;
}

/* Counts the products whose record is not the fastest, and makes the samples of both weigh more. */
static size_t weigh(fit *f)
{
    size_t wrong = 0;
    for (size_t i = 0, end; i < f->n; i = end) {
        fit_sample *chosen = &f->samples[i], *best = chosen;
        for (end = i; end < f->n && f->samples[end].product == chosen->product; end++) {
            fit_sample *p = &f->samples[end];
            chosen = expected(f, p) < expected(f, chosen) ? p : chosen;
            best = p->seconds < best->seconds ? p : best;
        }
        if (chosen->seconds > FIT_NEAR * best->seconds) {
            chosen->weight *= 1.5;
            best->weight *= 1.5;
            wrong++;
        }
    }
    return wrong;
}

size_t fit_solve(fit *f)
{
    enum { ROUNDS = 100 };
    fit_record_cost best[FIT_RECORDS];
    size_t least = SIZE_MAX;
    for (int round = 0; round < ROUNDS && least > 0; round++) {
        for (size_t i = 0; i < f->n_records; i++)
            fit_record(f, i, f->records[i].cost);
        const size_t wrong = weigh(f);
        if (wrong < least) {
            least = wrong;
            memcpy(best, f->records, sizeof best);
        }
    }
    memcpy(f->records, best, sizeof best);
    return least;
}
