/* Products of any numeric type, a row at a time. */
#include "ops/core/anyprod.h"

#include <string.h>

enum { WIDTH = 1024 }; /* columns of a work item */

typedef struct job {
    oct_dtype t;
    int64_t n, k, ldc, parts;
    oct_any_matrix a, b;
    void *c;
} job;

#define ACCUMULATE(type, member, expr)                  \
    do {                                                \
        const type f = *(const type *)left, *v = right; \
        for (int64_t j = 0; j < n; j++) {               \
            const type s = sum.member[j];               \
            sum.member[j] = (expr);                     \
        }                                               \
    } while (0)

static void part_of_row(const job *p, int64_t row, int64_t first)
{
    oct_chunk one, buffer, sum;
    int64_t n = p->n - first < WIDTH ? p->n - first : WIDTH;
    oct_dom dom = oct_dom_of(p->t);
    memset(&sum, 0, (size_t)n * sizeof sum.u[0]); /* of any domain */
    for (int64_t x = 0; x < p->k; x++) {
        const void *left = oct_elem_load(p->t, p->a.data, row * p->a.row + x * p->a.col, 1, 1, &one);
        const void *right = oct_elem_load(p->t, p->b.data, x * p->b.row + first * p->b.col, p->b.col, n, &buffer);
        switch (dom) {
        case OCT_DOM_F: ACCUMULATE(float, f, f *v[j] + s); break;
        case OCT_DOM_D: ACCUMULATE(double, d, f *v[j] + s); break;
        default: ACCUMULATE(uint64_t, u, f * v[j] + s); break;
        }
    }
    oct_elem_store(p->t, p->c, row * p->ldc + first, 1, n, dom, &sum);
}

static void parts(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *p = arg;
    for (size_t i = begin; i < end; i++)
        part_of_row(p, (int64_t)i / p->parts, (int64_t)i % p->parts * WIDTH);
}

void oct_any_product(oct_pool *pool, oct_dtype t, int64_t m, int64_t n, int64_t k, oct_any_matrix a, oct_any_matrix b,
                     void *c, int64_t ldc)
{
    job p = { t, n, k, ldc, (n + WIDTH - 1) / WIDTH, a, b, c };
    oct_pool_for(pool, (size_t)(m * p.parts), 4, parts, &p);
}

#define CLAMP(type, member)                                                    \
    for (int64_t i = 0; i < n; i++) {                                          \
        const type x = ((const type *)v)[i];                                   \
        const double d = (double)x;                                            \
        out.member[i] = e->lo > d ? (type)e->lo : e->hi < d ? (type)e->hi : x; \
    }

void oct_any_clamp(const oct_epilogue *e, const oct_operand *t)
{
    const oct_dom dom = oct_dom_of(t->dtype);
    oct_chunk raw, out;
    for (int64_t first = 0; e->clamp && first < t->count; first += WIDTH) {
        const int64_t n = t->count - first < WIDTH ? t->count - first : WIDTH;
        const void *v = oct_elem_load(t->dtype, t->data, first, 1, n, &raw);
        switch (dom) {
        case OCT_DOM_F: CLAMP(float, f) break;
        case OCT_DOM_D: CLAMP(double, d) break;
        case OCT_DOM_U: CLAMP(uint64_t, u) break;
        default: CLAMP(int64_t, i) break;
        }
        oct_elem_store(t->dtype, t->data, first, 1, n, dom, &out);
    }
}
