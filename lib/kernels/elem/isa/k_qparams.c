/* lib/kernels/elem/isa/k_qparams.c -- how well parameters fit each of sixteen columns, the better ones, and their
 * quantized values; compiled once per instruction set. */
#include "kernels/elem/isa.h"

#define N OCT_QPARAMS_COLUMNS

void K(qparams_sums)(const float *x, size_t n, oct_column_qparams *g)
{
    float inverse[N], lo[N], hi[N], ee[N] = { 0 }, ed[N] = { 0 }, dd[N] = { 0 };
    for (size_t j = 0; j < N; j++) {
        inverse[j] = 1.0f / g->scale[j];
        lo[j] = (float)-g->zero[j];
        hi[j] = (float)(g->top - g->zero[j]);
    }
    for (size_t i = 0; i < n; i++, x += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++) {
            const float v = x[j] * inverse[j], d = (float)round_clamped(v, lo[j], hi[j]), e = v - d;
            ee[j] += e * e;
            ed[j] += e * d;
            dd[j] += d * d;
        }
    }
    for (size_t j = 0; j < N; j++) {
        g->ee[j] = ee[j];
        g->ed[j] = ed[j];
        g->dd[j] = dd[j];
    }
}

void K(qparams_better)(const oct_column_qparams *g, oct_column_best *b)
{
    double fit[N], error[N];
    OCT_EACH
    for (size_t j = 0; j < N; j++) {
        const double dd = (double)g->dd[j], ed = (double)g->ed[j], scale = (double)g->scale[j];
        const double more = ed / dd, gain = ed * ed / dd;
        fit[j] = dd > 0 ? scale * (1 + more) : 0.0;
        error[j] = scale * scale * ((double)g->ee[j] - (dd > 0 ? gain : 0.0));
    }
    OCT_EACH
    for (size_t j = 0; j < N; j++) { /* an error that is larger than any marks what is no better */
        const double least = (double)OCT_LEAST_SCALE;
        error[j] = fabs((double)g->scale[j]) >= least ? error[j] : (double)INFINITY;
        error[j] = fabs(fit[j]) >= least ? error[j] : (double)INFINITY;
    }
    OCT_EACH
    for (size_t j = 0; j < N; j++) {
        const bool better = error[j] < b->error[j];
        b->scale[j] = better ? g->scale[j] : b->scale[j];
        b->fit[j] = better ? (float)fit[j] : b->fit[j];
        b->zero[j] = better ? g->zero[j] : b->zero[j];
        b->error[j] = better ? error[j] : b->error[j];
    }
}

void K(quantize_columns)(const float *x, size_t n, const oct_column_qparams *g, uint8_t *q)
{
    float inverse[N], lo[N], hi[N];
    int32_t zero[N];
    for (size_t j = 0; j < N; j++) {
        inverse[j] = 1.0f / g->scale[j];
        lo[j] = (float)-g->zero[j];
        hi[j] = (float)(g->top - g->zero[j]);
        zero[j] = g->zero[j];
    }
    for (size_t i = 0; i < n; i++, x += N, q += N) {
        OCT_EACH
        for (size_t j = 0; j < N; j++)
            q[j] = (uint8_t)(round_clamped(x[j] * inverse[j], lo[j], hi[j]) + zero[j]);
    }
}
