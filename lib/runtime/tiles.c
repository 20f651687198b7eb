/* Tiles: neighbouring steps that compute rows from the same rows run one after the other on a few rows at a time, which
 * stay in the cache, and not each over whole tensors: the products of attention with what lies between them, functions
 * of elements, normalizations and quantizers. The operators are called as ever, on sections of their operands. So the
 * bits are the same. */
#include "runtime/plan_int.h"

#include "base/io.h"
#include "kernels/rows.h"
#include "ops/core/elem.h"

#include <string.h>

/* Bytes that the results of a section may have together: what a first-level cache holds; beside products, whose
 * matrices are packed for each few sections, what a second-level cache does (most results take the place of others).
 * Less than LEAST in all gains nothing. */
enum { TILE = 1 << 15, PRODUCTS = 400000, LEAST = 1 << 17 };

/* Steps that run in tiles together, at the most: each is compared with those before it. */
enum { MOST_STEPS = 64 };

/* The steps of a lane on one section. */
typedef struct section_steps {
    oct_step *step;       /* [n] */
    oct_operand *operand; /* of all steps, in order */
} section_steps;

/* What a thread needs. */
typedef struct lane {
    section_steps full, rest; /* rest: of the last section along the axis, if that is shorter */
    double *seconds;          /* [n], of profiled runs */
    int64_t at;               /* index of the section's outer dimensions in the last call, or -1 */
} lane;

struct rt_tiles {
    size_t first, last; /* steps of the plan */
    int rank, axis;     /* of the results; sections are `rows` long along the axis, 1 before it, whole after it */
    int64_t dims[OCT_MAX_RANK], rows;
    int64_t outer, cuts; /* products of the dimensions before the axis; sections along it */
    size_t scratch;      /* of a lane */
    lane *lane;
};

static int buffer_of(const oct_operand *t)
{
    return ((const rt_operand *)t)->buffer;
}

static size_t bytes_of(const oct_operand *t)
{
    return (size_t)t->count * oct_elem_size(t->dtype);
}

/* ------------------------------------------------------------------ which steps */

/* Whether slot i of a step has matrices, whose last two dimensions a section keeps. */
static bool has_matrices(const oct_step *s, int i)
{
    return s->op->weights.slots >> i & 1;
}

/* Whether an operand can be cut like the results: its leading dimensions are theirs, or 1. */
static bool can_be_cut(const rt_tiles *t, const oct_operand *o, int keeps, bool whole)
{
    const int ahead = t->rank - o->rank;
    bool fits = o->layout == OCT_LAYOUT_PLAIN && oct_dtype_bits(o->dtype) >= 8 && oct_elem_size(o->dtype) &&
                (ahead == 0 || (ahead > 0 && !whole));
    for (int i = 0; fits && i < o->rank - keeps; i++)
        fits = o->dims[i] == t->dims[i + ahead] || (o->dims[i] == 1 && !whole);
    return fits;
}

/* The step of the plan between `first` and `end` that makes the bytes of an operand; -1: none. */
static int maker_in(const oct_plan *p, size_t first, size_t end, const oct_operand *o)
{
    const int root = rt_root(p, buffer_of(o));
    for (size_t i = end; i-- > first;)
        for (int k = 0; k < p->step[i]->s.n_out; k++) {
            const oct_operand *y = p->step[i]->s.out[k];
            if (y && rt_root(p, buffer_of(y)) == root)
                return (int)i;
        }
    return -1;
}

static bool is_shown(const rt_step *st)
{
    bool shown = false;
    for (int k = 0; k < st->s.n_out; k++)
        shown |= st->tap[k] != OCT_NO_TAP;
    return shown;
}

/* Whether a step can follow those from t->first on, or begin. *linked: it reads what one of them makes. */
static bool can_join(const oct_plan *p, const rt_tiles *t, size_t at, bool *linked)
{
    const rt_step *st = p->step[at];
    const oct_step *s = &st->s;
    if (st->alias || !s->op || s->wide || is_shown(st) || !s->op->by_rows || !s->op->by_rows(s))
        return false;
    for (int k = 0; k < s->n_out; k++)
        if (s->out[k] && (!can_be_cut(t, s->out[k], 1, true) || p->buffer[buffer_of(s->out[k])].alias >= 0))
            return false;
    for (int i = 0; i < s->n_in; i++) {
        const oct_operand *x = s->in[i];
        const int maker = x ? maker_in(p, t->first, at, x) : -1;
        if (!x)
            continue;
        if (!can_be_cut(t, x, has_matrices(s, i) ? 2 : 1, maker >= 0) ||
            (maker >= 0 && (has_matrices(s, i) || x->layout != OCT_LAYOUT_PLAIN || p->buffer[buffer_of(x)].alias >= 0)))
            return false;
        *linked |= maker >= 0;
    }
    return true;
}

/* Finds the steps from `first` on; false: there are not two of them. */
static bool find_steps(const oct_plan *p, size_t first, rt_tiles *t)
{
    const oct_step *s = &p->step[first]->s;
    const oct_operand *y = s->n_out ? s->out[0] : NULL;
    bool linked = false;
    if (!y || y->rank < 2 || y->count == 0)
        return false;
    *t = (rt_tiles){ .first = first, .last = first, .rank = y->rank };
    memcpy(t->dims, y->dims, sizeof t->dims);
    if (!can_join(p, t, first, &linked))
        return false;
    const size_t end = first + MOST_STEPS < p->n_step ? first + MOST_STEPS : p->n_step;
    for (linked = false; t->last + 1 < end && can_join(p, t, t->last + 1, &linked) && linked; linked = false)
        t->last++;
    return t->last > first;
}

/* ------------------------------------------------------------------ sections */

/* The length of the sections, by the bytes of their results. False: there is only one. */
static bool choose_rows(const oct_plan *p, rt_tiles *t)
{
    size_t bytes = 0, most = TILE;
    for (size_t i = t->first; i <= t->last; i++) {
        if (p->step[i]->s.op->weights.slots)
            most = PRODUCTS;
        for (int k = 0; k < p->step[i]->s.n_out; k++)
            bytes += p->step[i]->s.out[k] ? bytes_of(p->step[i]->s.out[k]) : 0;
    }
    if (bytes < LEAST)
        return false;
    for (t->axis = 0, t->outer = 1; t->axis < t->rank - 2; t->outer *= t->dims[t->axis++]) {
        if (bytes / (size_t)(t->outer * t->dims[t->axis]) <= most && t->dims[t->axis] > 1)
            break;
    }
    const size_t slice = bytes / (size_t)(t->outer * t->dims[t->axis]);
    t->rows = slice >= most ? 1 : (int64_t)(most / slice);
    t->cuts = (t->dims[t->axis] + t->rows - 1) / t->rows;
    t->rows = (t->dims[t->axis] + t->cuts - 1) / t->cuts; /* of about the same length */
    return t->outer * t->cuts > 1;
}

/* The dimensions of a section of an operand. */
static void cut(const rt_tiles *t, oct_operand *o, int keeps, int64_t rows)
{
    const int ahead = t->rank - o->rank;
    for (int i = 0; i < o->rank - keeps; i++)
        if (i + ahead <= t->axis && o->dims[i] == t->dims[i + ahead])
            o->dims[i] = i + ahead < t->axis ? 1 : rows;
    o->count = oct_product(o->dims, o->rank);
}

/* Where a section begins in an operand, in elements. */
static int64_t begin_of(const rt_tiles *t, const oct_operand *o, int keeps, int64_t outer, int64_t row)
{
    int64_t at = 0, stride[OCT_MAX_RANK] = { 0 };
    const int ahead = t->rank - o->rank;
    oct_operand_strides(o, stride);
    for (int i = t->axis; i >= 0; i--) {
        const int64_t index = i == t->axis ? row : outer % t->dims[i];
        outer /= i == t->axis ? 1 : t->dims[i];
        if (i >= ahead && i - ahead < o->rank - keeps && o->dims[i - ahead] == t->dims[i])
            at += index * stride[i - ahead];
    }
    return at;
}

static int keeps_of(const oct_step *s, int k)
{
    return k < s->n_in && has_matrices(s, k) ? 2 : 1;
}

/* Steps of a section of some rows, prepared. */
static oct_status prepare_section(oct_plan *p, const rt_tiles *t, int64_t rows, section_steps *of, size_t *scratch,
                                  oct_err *err)
{
    const size_t n = t->last - t->first + 1;
    const oct_prep prep = { .arena = p->arena, .threads = 1, .fast_pack = true, .bf16 = p->opts.bf16 };
    size_t n_operand = 0, used = 0;
    for (size_t i = t->first; i <= t->last; i++)
        n_operand += (size_t)(p->step[i]->s.n_in + p->step[i]->s.n_out);
    of->step = oct_arena_calloc(p->arena, n, sizeof *of->step);
    of->operand = oct_arena_calloc(p->arena, n_operand + 1, sizeof *of->operand);
    if (!of->step || !of->operand)
        return oct_nomem(err);
    oct_operand *o = of->operand;
    for (size_t i = 0; i < n; i++) {
        const oct_step *from = &p->step[t->first + i]->s;
        oct_step *s = &of->step[i];
        *s = *from;
        s->state = NULL;
        if (!(s->in = oct_arena_calloc(p->arena, (size_t)(s->n_in + s->n_out) + 1, sizeof *s->in)))
            return oct_nomem(err);
        s->out = s->in + s->n_in;
        for (int k = 0; k < s->n_in + s->n_out; k++, o++)
            if (from->in[k]) {
                *o = *from->in[k];
                cut(t, o, keeps_of(from, k), rows);
                o->constant &= o->count == from->in[k]->count; /* other sections have other data */
                s->in[k] = o;
            }
        OCT_TRY_WITHIN(oct_step_prepare(s, &prep, err), err, "node '%s' (%s)", s->node->name, s->node->op);
        if (!oct_add_size(used, oct_round_up(s->scratch, 64), &used))
            return oct_nomem(err);
    }
    *scratch = used > *scratch ? used : *scratch;
    return OCT_OK;
}

static oct_status prepare_lanes(oct_plan *p, rt_tiles *t, oct_err *err)
{
    const int threads = oct_pool_threads(p->opts.pool);
    const int64_t rest = t->dims[t->axis] - (t->cuts - 1) * t->rows;
    size_t all;
    if (!(t->lane = oct_arena_calloc(p->arena, (size_t)threads, sizeof *t->lane)))
        return oct_nomem(err);
    for (int i = 0; i < threads; i++) {
        lane *l = &t->lane[i];
        if (!(l->seconds = oct_arena_calloc(p->arena, t->last - t->first + 1, sizeof *l->seconds)))
            return oct_nomem(err);
        OCT_TRY(prepare_section(p, t, t->rows, &l->full, &t->scratch, err));
        if (rest != t->rows)
            OCT_TRY(prepare_section(p, t, rest, &l->rest, &t->scratch, err));
    }
    if (!oct_mul_size(t->scratch, (size_t)threads, &all))
        return oct_nomem(err);
    p->scratch_bytes = all > p->scratch_bytes ? all : p->scratch_bytes;
    return OCT_OK;
}

/* ------------------------------------------------------------------ results that only the tiles see */

/* The steps that read a buffer; an output of the model is read behind all steps. */
typedef struct readers {
    size_t first, last;
} readers;

/* Of each buffer that has bytes of its own. What tiles change later concerns buffers that their steps alone read. */
static readers *find_readers(const oct_plan *p)
{
    readers *of = oct_arena_alloc(p->arena, (p->n_buffer + 1) * sizeof *of);
    for (size_t b = 0; of && b < p->n_buffer; b++)
        of[b] = (readers){ SIZE_MAX, 0 };
    for (size_t i = 0; of && i < p->n_step; i++)
        for (int k = 0; k < p->step[i]->s.n_in; k++)
            if (p->step[i]->s.in[k]) {
                readers *r = &of[rt_root(p, buffer_of(p->step[i]->s.in[k]))];
                r->first = i < r->first ? i : r->first;
                r->last = i;
            }
    for (size_t i = 0; of && i < p->g->n_output; i++)
        of[rt_root(p, p->output[i]->buffer)].last = SIZE_MAX;
    return of;
}

/* Whether all readers of a step's result are among the steps. */
static bool is_private(const oct_plan *p, const rt_tiles *t, const readers *of, const oct_operand *y)
{
    const readers *r = &of[rt_root(p, buffer_of(y))];
    return r->first >= t->first && r->last <= t->last;
}

/* The private input in whose bytes output 0 of step i can be written, which nothing reads later; NULL: none. */
static const oct_operand *overwritten(const oct_plan *p, const rt_tiles *t, size_t i)
{
    const oct_step *s = &p->step[i]->s;
    for (int k = 0; k < s->n_in && k < 32; k++) {
        const oct_operand *x = s->in[k];
        bool last =
            x && s->overwrites >> k & 1 && maker_in(p, t->first, i, x) >= 0 && p->buffer[rt_root(p, buffer_of(x))].lane;
        for (size_t j = i; last && j <= t->last; j++)
            for (int q = 0; last && q < p->step[j]->s.n_in; q++)
                last = !p->step[j]->s.in[q] || (j == i && q == k) ||
                       rt_root(p, buffer_of(p->step[j]->s.in[q])) != rt_root(p, buffer_of(x));
        if (last)
            return x;
    }
    return NULL;
}

/* Private results need the memory of a section for each thread. */
static void shrink(oct_plan *p, const rt_tiles *t, const readers *of)
{
    const size_t threads = (size_t)oct_pool_threads(p->opts.pool);
    const oct_operand *o = t->lane[0].full.operand;
    for (size_t i = t->first; i <= t->last; i++) {
        const oct_step *s = &p->step[i]->s;
        o += s->n_in;
        for (int k = 0; k < s->n_out; k++, o++) {
            if (!s->out[k] || !is_private(p, t, of, s->out[k]))
                continue;
            rt_buffer *b = &p->buffer[buffer_of(s->out[k])];
            const oct_operand *x = k == 0 ? overwritten(p, t, i) : NULL;
            b->lane = oct_round_up(bytes_of(o), 64);
            b->bytes = b->lane * threads;
            if (x && p->buffer[rt_root(p, buffer_of(x))].lane == b->lane)
                b->alias = rt_root(p, buffer_of(x));
        }
    }
}

oct_status rt_tile(oct_plan *p, oct_err *err)
{
    const readers *of = find_readers(p);
    if (!of)
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_step && !p->opts.no_passes; i++) {
        rt_tiles found, *t;
        if (!find_steps(p, i, &found) || !choose_rows(p, &found))
            continue;
        if (!(t = oct_arena_alloc(p->arena, sizeof *t)))
            return oct_nomem(err);
        *t = found;
        OCT_TRY(prepare_lanes(p, t, err));
        shrink(p, t, of);
        for (i = t->first; i <= t->last; i++) {
            p->step[i]->tiles = t;
            p->step[i]->s.algorithm = "tiles"; /* for profiles */
        }
        i = t->last;
    }
    return OCT_OK;
}

size_t rt_tiles_first(const rt_tiles *t)
{
    return t->first;
}

size_t rt_tiles_last(const rt_tiles *t)
{
    return t->last;
}

/* ------------------------------------------------------------------ running */

typedef struct job {
    const oct_plan *p;
    const rt_tiles *t;
} job;

/* Where the operands of a section are. */
static void place(const job *j, const section_steps *of, size_t thread, int64_t outer, int64_t row)
{
    oct_operand *o = of->operand;
    for (size_t i = j->t->first; i <= j->t->last; i++) {
        const oct_step *s = &j->p->step[i]->s;
        for (int k = 0; k < s->n_in + s->n_out; k++, o++) {
            const oct_operand *from = s->in[k];
            const size_t own = from ? j->p->buffer[buffer_of(from)].lane : 0;
            if (!from)
                continue;
            o->data = own ? (char *)from->data + thread * own
                          : (char *)from->data +
                                (size_t)begin_of(j->t, from, keeps_of(s, k), outer, row) * oct_elem_size(from->dtype);
        }
    }
}

static oct_status run_section(void *arg, size_t item, size_t thread, oct_err *err)
{
    const job *j = arg;
    const rt_tiles *t = j->t;
    lane *l = &t->lane[thread];
    const int64_t outer = (int64_t)item / t->cuts, cut_at = (int64_t)item % t->cuts;
    const section_steps *of = cut_at == t->cuts - 1 && l->rest.step ? &l->rest : &l->full;
    char *scratch = (char *)j->p->scratch + thread * t->scratch;
    /* Matrices stay packed from one section to the next, as long as the steps are the same. */
    const bool again = l->at == outer && of == &l->full && t->axis >= t->rank - 2;
    l->at = of == &l->full ? outer : -1;
    place(j, of, thread, outer, cut_at * t->rows);
    for (size_t i = 0; i <= t->last - t->first; i++) {
        const oct_step *s = &of->step[i];
        const oct_run r = { .scratch = scratch, .iteration = j->p->iteration, .again = again };
        const double begin = j->p->profile ? oct_now() : 0;
        OCT_TRY_WITHIN(oct_step_run(s, &r, err), err, "node '%s' (%s)", s->node->name, s->node->op);
        l->seconds[i] += j->p->profile ? oct_now() - begin : 0;
        scratch += oct_round_up(s->scratch, 64);
    }
    return OCT_OK;
}

/* The time of a profiled run, divided as the threads have spent it. */
static void share_time(oct_plan *p, const rt_tiles *t, double seconds)
{
    const int threads = oct_pool_threads(p->opts.pool);
    double all = 0;
    for (size_t i = t->first; i <= t->last; i++)
        for (int k = 0; k < threads; k++)
            all += t->lane[k].seconds[i - t->first];
    for (size_t i = t->first; i <= t->last; i++) {
        p->step[i]->calls++;
        for (int k = 0; k < threads && all > 0; k++)
            p->step[i]->seconds += seconds * t->lane[k].seconds[i - t->first] / all;
    }
}

oct_status rt_tiles_run(oct_plan *p, const rt_tiles *t, oct_err *err)
{
    job j = { p, t };
    const double begin = p->profile ? oct_now() : 0;
    for (int k = 0; k < oct_pool_threads(p->opts.pool); k++) {
        t->lane[k].at = -1;
        memset(t->lane[k].seconds, 0, (t->last - t->first + 1) * sizeof(double));
    }
    OCT_TRY(oct_pool_try(p->opts.pool, (size_t)(t->outer * t->cuts), run_section, &j, err));
    if (p->profile)
        share_time(p, t, oct_now() - begin);
    return OCT_OK;
}
