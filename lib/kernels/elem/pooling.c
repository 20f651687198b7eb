/* lib/kernels/elem/pooling.c -- pooling of whole images: rows of output pixels over threads. */
#include "kernels/pooling.h"

#include "kernels/elem/table.h"
#include "kernels/math.h"

typedef enum pool_kind { POOL_MAX_F32, POOL_MAX_8, POOL_AVERAGE_F32, POOL_AVERAGE_8, POOL_LP } pool_kind;

typedef struct pooling_job {
    const oct_elem_table *k;
    pool_kind kind;
    const oct_pool2d *g;
    bool is_signed;
    const void *x;
    void *y;
    oct_qparam in, out;
    float p;
} pooling_job;

static float lp_window(const oct_pool2d *g, const float *x, size_t oy, size_t ox, size_t c, float p)
{
    float sum = 0.0f;
    for (size_t i = 0; i < g->kh; i++)
        for (size_t j = 0; j < g->kw; j++) {
            const ptrdiff_t yy = (ptrdiff_t)(oy * g->sh + i * g->dh) - (ptrdiff_t)g->pt;
            const ptrdiff_t xx = (ptrdiff_t)(ox * g->sw + j * g->dw) - (ptrdiff_t)g->pl;
            if (yy < 0 || xx < 0 || (size_t)yy >= g->h || (size_t)xx >= g->w)
                continue;
            sum += oct_powf(oct_absf(x[((size_t)yy * g->w + (size_t)xx) * g->c + c]), p);
        }
    return p == 2.0f ? sqrtf(sum) : oct_powf(sum, 1.0f / p);
}

static void lp_row(const oct_pool2d *g, const float *x, size_t oy, float p, float *y)
{
    for (size_t ox = 0; ox < g->ow; ox++)
        for (size_t c = 0; c < g->c; c++)
            y[ox * g->c + c] = lp_window(g, x, oy, ox, c, p);
}

static void pooling_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const pooling_job *j = arg;
    const oct_pool2d *g = j->g;
    for (size_t i = begin; i < end; i++) {
        const size_t oy = i % g->oh, x_at = i / g->oh * g->h * g->w * g->c, y_at = i * g->ow * g->c;
        switch (j->kind) {
        case POOL_MAX_F32: j->k->max_pool_f32_row(g, (const float *)j->x + x_at, oy, (float *)j->y + y_at); break;
        case POOL_AVERAGE_F32:
            j->k->average_pool_f32_row(g, (const float *)j->x + x_at, oy, (float *)j->y + y_at);
            break;
        case POOL_LP: lp_row(g, (const float *)j->x + x_at, oy, j->p, (float *)j->y + y_at); break;
        case POOL_AVERAGE_8:
            j->k->average_pool_8_row(g, j->is_signed, (const uint8_t *)j->x + x_at, j->in, j->out, oy,
                                     (uint8_t *)j->y + y_at);
            break;
        default:
            if (j->is_signed)
                j->k->max_pool_s8_row(g, (const int8_t *)j->x + x_at, oy, (int8_t *)j->y + y_at);
            else
                j->k->max_pool_u8_row(g, (const uint8_t *)j->x + x_at, oy, (uint8_t *)j->y + y_at);
        }
    }
}

static void run(oct_pool *pool, pooling_job *j)
{
    j->k = oct_elem();
    const size_t row = j->g->ow * j->g->c * j->g->kh * j->g->kw;
    oct_pool_for(pool, j->g->n * j->g->oh, row >= 16384 ? 1 : row ? 16384 / row : 1, pooling_tile, j);
}

void oct_max_pool_f32(oct_pool *pool, const oct_pool2d *g, const float *x, float *y)
{
    run(pool, &(pooling_job){ .kind = POOL_MAX_F32, .g = g, .x = x, .y = y });
}

void oct_max_pool_8(oct_pool *pool, const oct_pool2d *g, bool is_signed, const void *x, void *y)
{
    run(pool, &(pooling_job){ .kind = POOL_MAX_8, .g = g, .is_signed = is_signed, .x = x, .y = y });
}

void oct_average_pool_f32(oct_pool *pool, const oct_pool2d *g, const float *x, float *y)
{
    run(pool, &(pooling_job){ .kind = POOL_AVERAGE_F32, .g = g, .x = x, .y = y });
}

void oct_lp_pool_f32(oct_pool *pool, const oct_pool2d *g, float p, const float *x, float *y)
{
    run(pool, &(pooling_job){ .kind = POOL_LP, .g = g, .x = x, .y = y, .p = p });
}

void oct_average_pool_8(oct_pool *pool, const oct_pool2d *g, bool is_signed, const void *x, oct_qparam in,
                        oct_qparam out, void *y)
{
    run(pool,
        &(pooling_job){ .kind = POOL_AVERAGE_8, .g = g, .is_signed = is_signed, .x = x, .y = y, .in = in, .out = out });
}

void oct_global_average_pool_f32(oct_pool *pool, const float *x, size_t n, size_t hw, size_t c, float *y)
{
    oct_reduce_f32(pool, OCT_REDUCE_MEAN, x, n, hw, c, y);
}

typedef struct global_job {
    const oct_elem_table *k;
    bool is_signed;
    const uint8_t *x;
    uint8_t *y;
    size_t hw, c;
    oct_qparam in, out;
} global_job;

static void global_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const global_job *j = arg;
    for (size_t i = begin; i < end; i++)
        j->k->global_average_8(j->is_signed, j->x + i * j->hw * j->c, j->hw, j->c, j->in, j->out, j->y + i * j->c);
}

void oct_global_average_pool_8(oct_pool *pool, bool is_signed, const void *x, size_t n, size_t hw, size_t c,
                               oct_qparam in, oct_qparam out, void *y)
{
    global_job j = { oct_elem(), is_signed, x, y, hw, c, in, out };
    oct_pool_for(pool, n, 1, global_tile, &j);
}
