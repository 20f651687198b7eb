/* tests/check/bench.c -- times products and convolutions on layers of real networks, one thread: GOP/s (two operations
 * a multiply-accumulate), and which share that is of what this core can do on registers alone. */
#include "check.h"
#include "fit.h"
#include "layers.h"
#include "kernels/qgemm/qgemm_int.h"
#include "peak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct timing {
    oct_sconv s;
    oct_qconv q;
    oct_qgemm m; /* instead of q, where it is a product: what a convolution is not told */
    size_t rows; /* of the product; else 0 */
    void *x, *y, *packed, *scratch;
    const void *w;
    bool computed;
    oct_sout sout;
    oct_qout out;
} timing;

static void run_s(void *arg)
{
    timing *b = arg;
    if (b->computed)
        oct_sconv_pack(&b->s, b->w, b->packed);
    oct_sconv_run(&b->s, NULL, b->x, b->packed, b->y, &b->sout, b->scratch);
}

static void pack_product(const timing *b)
{
    oct_qgemm_pack(&b->m, b->w, 1, (ptrdiff_t)b->m.k, NULL, 0, b->packed);
}

/* Values lie around their zero point, as those that are not rectified do. */
static void run_product(const timing *b)
{
    if (b->computed)
        pack_product(b);
    oct_qgemm_run(&b->m, NULL, b->rows, b->x, b->m.k, 128, b->packed, NULL, &b->out, b->y, b->m.n, b->scratch);
}

static void run_q(void *arg)
{
    timing *b = arg;
    if (b->rows) {
        run_product(b);
        return;
    }
    if (b->computed)
        oct_qconv_pack(&b->q, b->w, NULL, 0, b->packed);
    oct_qconv_run(&b->q, NULL, b->x, 3, b->packed, NULL, &b->out, b->y, b->scratch);
}

/* Weights as trained ones look: bell-shaped, the largest of each output channel at `most`. */
static void fill_bell(oct_check *t, int8_t *w, size_t channels, size_t n, int most)
{
    int32_t *v = oct_check_buffer(t, n * sizeof *v);
    for (size_t c = 0; c < channels; c++) {
        int32_t top = 1;
        for (size_t i = 0; i < n; i++) {
            v[i] = -4 * 32768;
            for (int j = 0; j < 8; j++)
                v[i] += (int32_t)oct_check_below(t, 32768);
            top = abs(v[i]) > top ? abs(v[i]) : top;
        }
        for (size_t i = 0; i < n; i++)
            w[c * n + i] = (int8_t)((int64_t)v[i] * most / top);
    }
}

/* The exact product without 16-bit sums, where the kernel in use has them. */
static const oct_qgemm_kernel *plain_kernel(const oct_qgemm_kernel *k)
{
    size_t n;
    const oct_qgemm_kernel *plain = k;
    for (const oct_qgemm_kernel *i = oct_qgemm_kernels(&n); i < k; i++)
        if (k->order == OCT_QGEMM_CHAINS && i->mr == k->mr && i->nr == k->nr)
            plain = i;
    return plain;
}

enum { FORMS = 4 }; /* f32, 8-bit weights, 7-bit weights, 8-bit weights by the plain kernel */

/* Seconds of the three integer forms, measured in turns, and the algorithm of the first. */
static oct_status time_bytes(oct_check *t, timing *b, double seconds[FORMS - 1], const char **algorithm, oct_err *err)
{
    const oct_conv_geom *g = &b->q.g;
    const size_t nx = (size_t)(g->h * g->w * g->c), taps = (size_t)(g->kh * g->kw);
    const size_t n = (size_t)(g->c / g->groups) * taps, oc = (size_t)g->oc;
    timing each[FORMS - 1] = { *b, *b, *b };
    oct_fill_bytes(t, b->x, nx);
    for (size_t i = 0; i < FORMS - 1; i++) {
        int8_t *w = oct_check_buffer(t, n * oc);
        fill_bell(t, w, oc, n, i == 1 ? 63 : 127);
        each[i].w = w;
        if (i == FORMS - 2 && b->q.kernel) {
            oct_choice_want(plain_kernel(b->q.kernel)->name, NULL);
            const oct_status s = oct_qconv_prepare(&each[i].q, g, OCT_U8, OCT_S8, 1, err);
            oct_choice_want(NULL, NULL);
            OCT_TRY(s);
        }
        each[i].packed = oct_check_buffer(t, each[i].q.packed_size);
        each[i].scratch = oct_check_buffer(t, each[i].q.scratch_size);
        each[i].q.fast_pack = b->computed;
        oct_qconv_pack(&each[i].q, w, NULL, 0, each[i].packed);
        seconds[i] = 1e9;
    }
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < FORMS - 1; i++) {
            const double s = oct_check_time(run_q, &each[i]);
            seconds[i] = s < seconds[i] ? s : seconds[i];
        }
    *algorithm = oct_qconv_algorithm_name(&each[0].q);
    return OCT_OK;
}

/* Seconds of all forms of one product of the layer. */
static oct_status time_layer(oct_check *t, const check_layer *l, double seconds[FORMS], const char **algorithm,
                             oct_err *err)
{
    const oct_conv_geom *g = &l->g;
    timing b = { .computed = l->computed };
    OCT_TRY(oct_sconv_prepare(&b.s, g, false, 1, err));
    OCT_TRY(oct_qconv_prepare(&b.q, g, OCT_U8, OCT_S8, 1, err));
    const size_t nx = (size_t)(g->h * g->w * g->c), ny = (size_t)(g->oh * g->ow * g->oc);
    const size_t nw = (size_t)(g->c / g->groups * g->oc * g->kh * g->kw);
    float *w = oct_check_buffer(t, nw * 4), *mult = oct_check_buffer(t, (size_t)g->oc * 4);
    oct_fill_f32(t, w, nw);
    for (int64_t i = 0; i < g->oc; i++)
        mult[i] = 1e-4f;
    b.sout = (oct_sout){ .bias = mult, .clamp = true, .hi = 6 };
    b.w = w;
    b.x = oct_check_buffer(t, nx * 4);
    b.y = oct_check_buffer(t, ny * 4);
    b.packed = oct_check_buffer(t, b.s.packed_size);
    b.scratch = oct_check_buffer(t, b.s.scratch_size);
    oct_fill_f32(t, b.x, nx);
    oct_sconv_pack(&b.s, w, b.packed);
    seconds[0] = oct_check_time(run_s, &b);
    b.out = (oct_qout){ .mult = mult };
    oct_qout_range(&b.out, OCT_QOUT_U8, 128);
    return time_bytes(t, &b, seconds + 1, algorithm, err);
}

static double giga_operations(const check_layer *l)
{
    const oct_conv_geom *g = &l->g;
    const int64_t pixels = g->transposed ? g->h * g->w : g->oh * g->ow;
    return 2e-9 * (double)(pixels * g->kh * g->kw) * (double)(g->c / g->groups) * (double)g->oc;
}

/* GOP/s of each form and its share of the peak. */
static void print_line(const char *name, const char *algorithm, double work, const double seconds[FORMS],
                       const double peak[FORMS])
{
    printf("%-34s %-9s %9.1f", name, algorithm, work * 1e3);
    for (size_t i = 0; i < FORMS; i++) {
        const double rate = work / seconds[i];
        printf(peak[i] > 0 ? " %7.1f %3.0f%%" : " %7.1f    ", rate, peak[i] > 0 ? rate / peak[i] * 100 : 0);
    }
    printf("\n");
    fflush(stdout);
}

typedef struct timed {
    oct_check *t;
    const double *peak;
    double total[FORMS], work;
} timed;

static bool bench_layer(void *arg, const check_layer *l, oct_err *err)
{
    timed *b = arg;
    char name[80];
    double seconds[FORMS];
    const char *how;
    const bool ok = time_layer(b->t, l, seconds, &how, err) == OCT_OK;
    oct_check_release(b->t);
    if (!ok)
        return false;
    check_layer_name(l, name, sizeof name);
    print_line(name, how, giga_operations(l), seconds, b->peak);
    b->work += giga_operations(l) * (double)(l->times * l->batch);
    for (size_t i = 0; i < FORMS; i++)
        b->total[i] += seconds[i] * (double)(l->times * l->batch);
    return true;
}

static bool bench_file(oct_check *t, const char *path, const double peak[FORMS])
{
    timed b = { .t = t, .peak = peak };
    printf("\n%s\n", path);
    if (!check_each_layer(path, bench_layer, &b))
        return false;
    print_line("all, as often as they come", "", b.work, b.total, peak);
    printf("%-54s %9.2f ms %8.2f ms %8.2f ms %8.2f ms\n", "", b.total[0] * 1e3, b.total[1] * 1e3, b.total[2] * 1e3,
           b.total[3] * 1e3);
    return true;
}

bool bench_products(oct_check *t, char **files, int n)
{
    static char *selection[] = { OCT_SHAPES };
    const oct_isa isa = oct_isa_active();
    const oct_qgemm_kernel *kernel = oct_qgemm_choose(isa, &(oct_extent){ .n = 256, .depth = 256 }, true).record;
    const oct_sgemm_kernel *sgemm = oct_sgemm_choose(isa, &(oct_extent){ .n = 256, .depth = 256 }).record;
    const double f32 = oct_peak_of(OCT_PEAK_FLOAT, isa) * 2e-9, bytes = oct_peak_of(OCT_PEAK_BYTES, isa) * 2e-9;
    const double plain = kernel == plain_kernel(kernel) ? bytes : oct_peak_of(OCT_PEAK_WIDE, isa) * 2e-9;
    const double peak[FORMS] = { f32, bytes, bytes, plain };
    printf("%s, float %s, int8 %s; GOP/s, one thread, and the share of the peak: f32 %.1f, bytes %.1f, plain %.1f\n",
           oct_isa_name(isa), sgemm->name, kernel->name, f32, bytes, plain);
    printf("%-34s %-9s %9s %12s %12s %12s %12s\n", "layer", "algorithm", "MOP", "f32", "8-bit", "7-bit", "plain");
    bool ok = true;
    for (int i = 0; i < (n ? n : 1) && ok; i++)
        ok = bench_file(t, n ? files[i] : selection[i], peak);
    return ok;
}

/* ---- more threads ---- */

static const size_t plan_threads[] = { 1, 2, 4, 8, 16, 32, 64 };
enum { PLANS = OCT_COUNT(plan_threads) };

/* Seconds by the cost model: products at 130 GMAC/s and 1.3 ns for the last step of a row of 16; a call of the pool
 * takes 1.2 us with two threads, as measured on Zen 3, and as much again for each doubling, which is assumed. */
static bool plan_layer(void *arg, const check_layer *l, oct_err *err)
{
    double *seconds = arg;
    const oct_conv_geom *g = &l->g;
    const size_t groups = (size_t)g->groups, depth = (size_t)(g->c / g->groups * g->kh * g->kw),
                 rows = (size_t)(g->oh * g->ow);
    const oct_qgemm_kernel *k =
        oct_qgemm_choose(oct_isa_active(), &(oct_extent){ rows, (size_t)(g->oc / g->groups), depth }, true).record;
    if (g->groups == g->c && g->c > 1)
        return true; /* depthwise: thousands of small items */
    const oct_work w =
        oct_qtiles_work(k, rows, (size_t)(g->oc / g->groups), groups, oct_qtiles_block(k, depth, false), true);
    const double unit = (double)(depth * k->nr) / 130e9 + 1.3e-9;
    double wake = 0;
    for (size_t i = 0; i < PLANS; i++, wake += 1.2e-6) {
        const oct_items d = oct_items_cut(&w, plan_threads[i]);
        const double s = wake + unit * oct_items_cost(&w, &d, plan_threads[i]);
        seconds[i] += s * (double)(l->times * l->batch);
    }
    return true;
}

bool bench_plan(char **files, int n)
{
    printf("expected speed-up of 8-bit products with threads\n%-34s", "");
    for (size_t i = 1; i < PLANS; i++)
        printf(" %6zu", plan_threads[i]);
    printf("\n");
    for (int i = 0; i < n; i++) {
        double seconds[PLANS] = { 0 };
        if (!check_each_layer(files[i], plan_layer, seconds))
            return false;
        const char *name = strrchr(files[i], '/');
        printf("%-34s", name ? name + 1 : files[i]);
        for (size_t k = 1; k < PLANS; k++)
            printf(" %6.2f", seconds[0] / seconds[k]);
        printf("\n");
    }
    return true;
}

/* ---- choice among records ---- */

/* The float or the 8-bit form of a layer, computed by the record of that name. */
typedef struct candidate {
    const char *name;
    timing b;
    double seconds, terms[OCT_COST_TERMS];
} candidate;

enum { CANDIDATES = 16 };

static const char *record_of(const timing *b, bool bytes)
{
    if (bytes && b->rows)
        return b->m.kernel->name;
    if (!bytes)
        return oct_sconv_kernel_name(&b->s);
    /* What gathering takes for kernels of blocks is no part of a record's cost. */
    const bool gathers = b->q.kernel && b->q.kernel->block && strcmp(oct_qconv_algorithm_name(&b->q), "gather") == 0;
    return gathers ? "" : oct_qconv_kernel_name(&b->q);
}

/* With the record of that name, if it may run; NULL: the one chosen by cost. */
static oct_status plan(const oct_conv_geom *g, bool bytes, const char *want, double terms[OCT_COST_TERMS], timing *b,
                       oct_err *err)
{
    oct_choice_want(want, terms);
    const oct_status s = bytes && b->rows
                             ? oct_qgemm_prepare(&b->m, b->rows, (size_t)g->oc, (size_t)g->c, OCT_U8, OCT_S8, 1, err)
                         : bytes ? oct_qconv_prepare(&b->q, g, OCT_U8, OCT_S8, 1, err)
                                 : oct_sconv_prepare(&b->s, g, false, 1, err);
    oct_choice_want(NULL, NULL);
    return s;
}

/* What a form of a layer runs on. */
static timing operands(oct_check *t, const check_layer *l, bool bytes)
{
    const oct_conv_geom *g = &l->g;
    const size_t nx = (size_t)(g->h * g->w * g->c), ny = (size_t)(g->oh * g->ow * g->oc), oc = (size_t)g->oc;
    const size_t n = (size_t)(g->c / g->groups * g->kh * g->kw);
    float *mult = oct_check_buffer(t, oc * 4);
    void *w = oct_check_buffer(t, n * oc * 4);
    timing b = { .x = oct_check_buffer(t, nx * 4), .y = oct_check_buffer(t, ny * 4), .w = w, .computed = l->computed };
    for (size_t i = 0; i < oc; i++)
        mult[i] = 1e-4f;
    b.sout = (oct_sout){ .bias = mult, .clamp = true, .hi = 6 };
    b.out = (oct_qout){ .mult = mult };
    oct_qout_range(&b.out, OCT_QOUT_U8, 128);
    if (bytes && !strstr(l->op, "Conv")) {
        b.rows = (size_t)(g->h * g->w);
        fill_bell(t, b.x, b.rows, n, 127);
        for (size_t i = 0; i < nx; i++)
            ((uint8_t *)b.x)[i] ^= 0x80;
        fill_bell(t, w, oc, n, 127);
    } else if (bytes) {
        oct_fill_bytes(t, b.x, nx);
        fill_bell(t, w, oc, n, 127);
    } else {
        oct_fill_f32(t, b.x, nx);
        oct_fill_f32(t, w, n * oc);
    }
    return b;
}

static void get_ready(oct_check *t, candidate *c, bool bytes)
{
    timing *b = &c->b;
    const bool product = bytes && b->rows;
    b->packed = oct_check_buffer(t, product ? b->m.packed_size : bytes ? b->q.packed_size : b->s.packed_size);
    b->scratch = oct_check_buffer(t, product ? b->m.scratch_size : bytes ? b->q.scratch_size : b->s.scratch_size);
    b->q.fast_pack = b->m.fast_pack = b->computed;
    if (product)
        pack_product(b);
    else if (bytes)
        oct_qconv_pack(&b->q, b->w, NULL, 0, b->packed);
    else
        oct_sconv_pack(&b->s, b->w, b->packed);
    c->seconds = 1e9;
}

/* The records that may compute a form of a layer but the reference, each ready to run. */
static oct_status find_candidates(oct_check *t, const check_layer *l, bool bytes, candidate c[CANDIDATES], size_t *n,
                                  oct_err *err)
{
    const timing b = operands(t, l, bytes);
    const char *names[OCT_CHECK_RECORDS];
    const size_t all = oct_check_records(bytes, names);
    *n = 0;
    for (size_t i = 0; i < all && *n < CANDIDATES; i++) {
        candidate *to = &c[*n];
        *to = (candidate){ .name = names[i], .b = b };
        OCT_TRY(plan(&l->g, bytes, names[i], to->terms, &to->b, err));
        if (strcmp(record_of(&to->b, bytes), names[i]) == 0 && !strstr(names[i], "__ref")) {
            get_ready(t, to, bytes);
            ++*n;
        }
    }
    return OCT_OK;
}

/* The fastest of rounds in turn, so that other work on the machine disturbs all alike. */
static void time_candidates(candidate *c, size_t n, bool bytes, int rounds)
{
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++) {
            const double s = oct_check_time_once(bytes ? run_q : run_s, &c[i].b);
            c[i].seconds = s < c[i].seconds ? s : c[i].seconds;
        }
}

typedef struct order {
    oct_check *t;
    size_t layers, wrong;
} order;

/* Compares what is chosen for a form of a layer with the fastest. One that seems wrong is measured again, longer. */
static bool order_form(order *o, const check_layer *l, bool bytes, oct_err *err)
{
    candidate c[CANDIDATES];
    size_t n, chosen = 0, best = 0;
    timing b = operands(o->t, l, bytes);
    if (find_candidates(o->t, l, bytes, c, &n, err) != OCT_OK || plan(&l->g, bytes, NULL, NULL, &b, err) != OCT_OK)
        return false;
    o->layers += n > 0;
    for (int rounds = 4; rounds <= 64 && n > 0; rounds *= 4) {
        time_candidates(c, n, bytes, rounds);
        for (size_t i = 0; i < n; i++) {
            chosen = strcmp(c[i].name, record_of(&b, bytes)) == 0 ? i : chosen;
            best = c[i].seconds < c[best].seconds ? i : best;
        }
        if (c[chosen].seconds <= 1.1 * c[best].seconds)
            return true;
    }
    if (n > 0) {
        char name[80];
        check_layer_name(l, name, sizeof name);
        printf("%-34s %s %9.1f us, %s %9.1f us: %.2f\n", name, c[chosen].name, c[chosen].seconds * 1e6, c[best].name,
               c[best].seconds * 1e6, c[chosen].seconds / c[best].seconds);
        fflush(stdout);
        o->wrong++;
    }
    return true;
}

static bool order_layer(void *arg, const check_layer *l, oct_err *err)
{
    order *o = arg;
    bool ok = true;
    for (int bytes = 0; bytes < 2 && ok; bytes++) {
        ok = order_form(o, l, bytes, err);
        oct_check_release(o->t);
    }
    return ok;
}

bool bench_order(oct_check *t, char **files, int n)
{
    order o = { .t = t };
    for (int i = 0; i < n; i++)
        if (!check_each_layer(files[i], order_layer, &o))
            return false;
    printf("%s of class %s: %zu products, %zu not by the fastest kernel\n", oct_isa_name(oct_isa_active()),
           oct_cost_class(), o.layers, o.wrong);
    return o.wrong == 0;
}

/* ---- the table of costs ---- */

typedef struct table {
    oct_check *t;
    fit *fit; /* NULL: times are printed */
    size_t products;
} table;

static bool keep(table *to, const check_layer *l, bool bytes, const candidate *c)
{
    char name[80];
    if (to->fit)
        return fit_add(to->fit, to->products, c->name, c->terms, c->seconds);
    check_layer_name(l, name, sizeof name);
    printf("%s,%s,%s,%.2f\n", bytes ? "int8" : "float", name, c->name, c->seconds * 1e6);
    return true;
}

static bool cost_layer(void *arg, const check_layer *l, oct_err *err)
{
    table *to = arg;
    bool ok = true;
    for (int bytes = 0; bytes < 2 && ok && !l->computed; bytes++, to->products++) {
        candidate c[CANDIDATES];
        size_t n = 0;
        ok = find_candidates(to->t, l, bytes, c, &n, err) == OCT_OK;
        time_candidates(c, n, bytes, 24);
        for (size_t i = 0; i < n && ok; i++)
            ok = keep(to, l, bytes, &c[i]);
        oct_check_release(to->t);
    }
    return ok;
}

bool bench_costs(oct_check *t, char **files, int n)
{
    static fit costs;
    table to = { .t = t, .fit = &costs };
    for (int i = 0; i < n; i++)
        if (!check_each_layer(files[i], cost_layer, &to))
            return false;
    const size_t wrong = fit_solve(&costs);
    char id[32], date[16];
    const time_t now = time(NULL);
    snprintf(id, sizeof id, "%s", oct_cost_class());
    for (char *dash = strchr(id, '-'); dash; dash = strchr(dash, '-'))
        *dash = '_';
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    printf("OCT_COSTS_OF(%s, \"%s\", \"the machine's name\", \"%s\")\n", id, oct_cost_class(), date);
    for (size_t i = 0; i < costs.n_records; i++) {
        const double *x = costs.records[i].cost;
        printf("OCT_COST(%s, \"%s\", %.0f, %.0f, %.0f, %.0f, %.1f, %.2f)\n", id, costs.records[i].name, x[0] * 1e12,
               x[1] * 1e12, x[2] * 1e12, x[3] * 1e12, x[4] * 1e12, x[5] * 1e12);
    }
    printf("/* of %zu products %zu are not by the fastest kernel */\n", to.products, wrong);
    return true;
}

bool bench_times(oct_check *t, char **files, int n)
{
    table to = { .t = t };
    printf("form,layer,record,us\n");
    for (int i = 0; i < n; i++)
        if (!check_each_layer(files[i], cost_layer, &to))
            return false;
    return true;
}
