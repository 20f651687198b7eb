/* Where runs spend time and bytes: the steps of models that run in turn, and the layers of the float model beside their
 * counterparts. */
#include "eval/run/eval_int.h"
#include "eval/pairs/pairs.h"

#include "base/io.h"
#include "eval/pairs/name_map.h"

#include <math.h>
#include <string.h>

enum { FEWEST = 5, MOST = 30 };
static const double LONGEST = 2; /* seconds for runs beyond the least number */

/* The profiled runs of a model. */
typedef struct profiled {
    oct_plan *plan;
    size_t n;        /* how many steps */
    double *seconds; /* [MOST][n], of each run */
    double *so_far;  /* [n] */
    int *row;        /* [n]; -1: it belongs to no row */
} profiled;

static oct_status run_profiled(ev_timed *t, const oct_array *arrays, profiled *p, int run, oct_err *err)
{
    oct_plan *plan;
    if (!t->engine->here) /* another runtime does not report steps */
        return OCT_OK;
    OCT_TRY(oct_runner_run(t->engine->here, arrays, &plan, err));
    for (size_t i = 0; i < p->n && run >= 0; i++) {
        const oct_step_info s =
            i < oct_plan_n_steps(plan) ? oct_plan_step(plan, i) : (oct_step_info){ .seconds = p->so_far[i] };
        p->seconds[(size_t)run * p->n + i] = s.seconds - p->so_far[i];
        p->so_far[i] = s.seconds;
    }
    return OCT_OK;
}

static oct_status begin(ev_timed *t, const oct_array *arrays, oct_arena *a, profiled *p, oct_err *err)
{
    if (!t->engine->here)
        return OCT_OK;
    OCT_TRY(oct_runner_plan(t->engine->here, arrays, &p->plan, err));
    oct_plan_profile(p->plan, true);
    OCT_TRY(run_profiled(t, arrays, p, -1, err)); /* models that run in stages are planned during this run */
    oct_plan_profile(p->plan, true);
    p->n = oct_plan_n_steps(p->plan);
    p->seconds = oct_arena_calloc(a, MOST * p->n + 1, sizeof *p->seconds);
    p->so_far = oct_arena_calloc(a, p->n + 1, sizeof *p->so_far);
    p->row = oct_arena_alloc(a, (p->n + 1) * sizeof *p->row);
    return p->seconds && p->so_far && p->row ? OCT_OK : oct_nomem(err);
}

/* The shortest possible time of a step; NaN if the machine was not measured. */
static double shortest(const oct_eval_machine *m, const oct_step_info *s)
{
    const double peak = strcmp(s->scheme, "int8") == 0 ? m->int8_macs : m->float_macs;
    return m->bytes > 0 ? fmax(s->macs ? (double)s->macs / peak : 0, (double)s->bytes / m->bytes) : NAN;
}

static oct_status list_steps(const profiled *p, int runs, const oct_eval_machine *machine, oct_arena *a,
                             oct_eval_model_result *r, oct_err *err)
{
    double seconds[MOST];
    r->n_steps = p->n;
    if (!(r->steps = oct_arena_calloc(a, r->n_steps + 1, sizeof *r->steps)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->n_steps; i++) {
        oct_step_info s = oct_plan_step(p->plan, i);
        const char *name = oct_arena_strdup(a, s.name),
                   *op = oct_arena_strdup(a, s.op); /* the plan does not exist as long */
        if (!name || !op)
            return oct_nomem(err);
        for (int k = 0; k < runs; k++)
            seconds[k] = p->seconds[(size_t)k * p->n + i];
        const oct_quartiles q = oct_quartiles_of(seconds, (size_t)runs);
        const double least = shortest(machine, &s);
        r->steps[i] = (oct_eval_step){ .name = name,
                                       .op = op,
                                       .scheme = s.scheme,
                                       .algorithm = s.algorithm,
                                       .kernel = s.kernel,
                                       .seconds = q.median,
                                       .macs = s.macs,
                                       .bytes = s.bytes,
                                       .scattered = oct_is_scattered(q.q1, q.median, q.q3),
                                       .roof = least > 0 && q.median > 0 ? least / q.median : NAN };
    }
    return OCT_OK;
}

/* ---- rows ---- */

/* The first steps that compute values, by the values' names. */
static oct_status map_steps(const profiled *p, oct_arena *a, oct_name_map *m, oct_err *err)
{
    OCT_TRY(oct_name_map_init(m, p->n, a, err));
    for (size_t i = 0; i < p->n; i++) {
        const char *value = oct_plan_step(p->plan, i).value;
        if (*value)
            oct_name_map_add(m, value, i);
    }
    return OCT_OK;
}

/* The first step that computes the value of a pair, under any of its names; -1: none. */
static int find_step(const oct_name_map *steps, const oct_pair *p)
{
    const char *const names[] = { p->held, p->shown, p->other };
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        const size_t at = *names[i] ? oct_name_map_find(steps, names[i]) : SIZE_MAX;
        first = at < first ? at : first;
    }
    return first == SIZE_MAX ? -1 : (int)first;
}

/* The pairs of each value of the float model, in their order: `next` leads from one to the next with the same value. */
static oct_status map_pairs(const oct_pairs *pairs, oct_arena *a, oct_name_map *m, size_t **next, oct_err *err)
{
    OCT_TRY(oct_name_map_init(m, pairs->n, a, err));
    size_t *last = oct_arena_calloc(a, pairs->n + 1, sizeof *last); /* of those with the value of the first one */
    if (!last || !(*next = oct_arena_calloc(a, pairs->n + 1, sizeof **next)))
        return oct_nomem(err);
    for (size_t i = 0; i < pairs->n; i++) {
        const size_t first = oct_name_map_find(m, pairs->pair[i].value);
        (*next)[i] = SIZE_MAX;
        oct_name_map_add(m, pairs->pair[i].value, i);
        if (first != SIZE_MAX)
            (*next)[last[first]] = i;
        last[first == SIZE_MAX ? i : first] = i;
    }
    return OCT_OK;
}

/* Assigns steps without a row to the next step that has one, and those at the end to the row `last`. */
static void spread_rows(profiled *p, int last)
{
    for (size_t i = p->n; i-- > 0;) {
        last = p->row[i] >= 0 ? p->row[i] : last;
        p->row[i] = last;
    }
}

/* Numbers the rows in the order of the float model's steps, *n of them. */
static oct_status number_rows(const oct_pairs *pairs, profiled *was, profiled *is, oct_arena *a, size_t *n,
                              oct_err *err)
{
    oct_name_map steps, values;
    size_t *next;
    int behind = -1;
    OCT_TRY(map_steps(is, a, &steps, err));
    OCT_TRY(map_pairs(pairs, a, &values, &next, err));
    *n = 0;
    for (size_t i = 0; i < is->n; i++)
        is->row[i] = -1;
    for (size_t i = 0; i < was->n; i++) {
        const char *value = oct_plan_step(was->plan, i).value;
        was->row[i] = -1;
        for (size_t k = *value ? oct_name_map_find(&values, value) : SIZE_MAX; k != SIZE_MAX; k = next[k]) {
            const int other = find_step(&steps, &pairs->pair[k]);
            if (other < 0 || is->row[other] >= 0)
                continue;
            was->row[i] = is->row[other] = (int)(*n)++;
            behind = was->row[i];
            break;
        }
    }
    spread_rows(was, behind);
    int last = behind; /* in the order of the other model */
    for (size_t i = 0; i < is->n; i++)
        last = is->row[i] >= 0 ? is->row[i] : last;
    spread_rows(is, last);
    return OCT_OK;
}

/* The steps in the order of their rows: those of row r are at[first[r]] .. at[first[r + 1] - 1]. */
typedef struct row_steps {
    size_t *first, *at;
} row_steps;

static oct_status sort_steps(const profiled *p, size_t rows, oct_arena *a, row_steps *s, oct_err *err)
{
    s->first = oct_arena_calloc(a, rows + 2, sizeof *s->first);
    s->at = oct_arena_calloc(a, p->n + 1, sizeof *s->at);
    if (!s->first || !s->at)
        return oct_nomem(err);
    for (size_t i = 0; i < p->n; i++)
        if (p->row[i] >= 0)
            s->first[p->row[i] + 2]++; /* one further than where it belongs: filling moves it there */
    for (size_t r = 2; r <= rows; r++)
        s->first[r + 1] += s->first[r];
    for (size_t i = 0; i < p->n; i++)
        if (p->row[i] >= 0)
            s->at[s->first[p->row[i] + 1]++] = i;
    return OCT_OK;
}

static void add_step(const oct_eval_machine *m, const profiled *p, size_t i, size_t *main, double *least,
                     oct_eval_cost *c)
{
    const oct_step_info s = oct_plan_step(p->plan, i);
    if (c->steps) {
        const oct_step_info was = oct_plan_step(p->plan, *main);
        *main = s.macs > was.macs || (s.macs == was.macs && s.seconds > was.seconds) ? i : *main;
    } else {
        *main = i;
    }
    c->steps++;
    c->macs += s.macs;
    c->bytes += s.bytes;
    c->weights += s.constants;
    c->made += s.made;
    *least += shortest(m, &s);
}

static void fill_cost(const oct_eval_machine *m, const profiled *p, const row_steps *of, size_t row, int runs,
                      oct_eval_cost *c, size_t *main)
{
    double seconds[MOST] = { 0 }, least = 0;
    *c = (oct_eval_cost){ .roof = NAN };
    for (size_t k = of->first[row]; k < of->first[row + 1]; k++) {
        const size_t i = of->at[k];
        add_step(m, p, i, main, &least, c);
        for (int run = 0; run < runs; run++)
            seconds[run] += p->seconds[(size_t)run * p->n + i];
    }
    if (!c->steps)
        return;
    const oct_quartiles q = oct_quartiles_of(seconds, (size_t)runs);
    c->seconds = q.median;
    c->q1 = q.q1;
    c->q3 = q.q3;
    c->scattered = oct_is_scattered(q.q1, q.median, q.q3);
    c->roof = q.median > 0 ? least / q.median : NAN;
    c->scheme = oct_plan_step(p->plan, *main).scheme;
}

static oct_status list_rows(const oct_pairs *pairs, profiled *was, profiled *is, int runs, oct_arena *a,
                            oct_eval_result *r, oct_eval_model_result *m, oct_err *err)
{
    row_steps of_was, of_is;
    OCT_TRY(number_rows(pairs, was, is, a, &m->n_costs, err));
    OCT_TRY(sort_steps(was, m->n_costs, a, &of_was, err));
    OCT_TRY(sort_steps(is, m->n_costs, a, &of_is, err));
    if (!(m->costs = oct_arena_calloc(r->arena, m->n_costs + 1, sizeof *m->costs)))
        return oct_nomem(err);
    for (size_t i = 0; i < m->n_costs; i++) {
        oct_eval_cost_row *row = &m->costs[i];
        size_t main = 0, other;
        fill_cost(&r->machine, is, &of_is, i, runs, &row->is, &other);
        fill_cost(&r->machine, was, &of_was, i, runs, &row->was, &main);
        const oct_step_info s = oct_plan_step(was->plan, main);
        row->name = oct_arena_strdup(r->arena, *s.name ? s.name : s.value);
        row->op = oct_arena_strdup(r->arena, s.op);
        if (!row->name || !row->op)
            return oct_nomem(err);
    }
    return OCT_OK;
}

const double oct_scattered_spread = 0.1;

bool oct_is_scattered(double q1, double median, double q3)
{
    return !(q3 - q1 <= oct_scattered_spread * median);
}

double oct_eval_cost_faster(const oct_eval_cost *was, const oct_eval_cost *is)
{
    return was->steps && is->steps && !was->scattered && !is->scattered && is->seconds > 0 ? was->seconds / is->seconds
                                                                                           : NAN;
}

static oct_status profile(ev_timed *t, size_t n, const oct_array *arrays, const oct_eval_model *models, oct_arena *a,
                          oct_eval_result *r, oct_err *err)
{
    profiled *p = oct_arena_calloc(a, n, sizeof *p);
    int runs = 0;
    if (!p)
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++)
        OCT_TRY(begin(&t[k], arrays, a, &p[k], err));
    for (const double began = oct_now(); runs < MOST && (runs < FEWEST || oct_now() - began < LONGEST); runs++)
        for (size_t k = 0; k < n; k++)
            OCT_TRY(run_profiled(&t[k], arrays, &p[k], runs, err));
    for (size_t k = 0; k < n; k++) {
        if (!p[k].plan)
            continue;
        oct_plan_profile(p[k].plan, false);
        OCT_TRY(list_steps(&p[k], runs, &r->machine, r->arena, &r->models[k], err));
    }
    for (size_t k = 1; k < n; k++) {
        oct_pairs pairs;
        if (!p[0].plan || !p[k].plan)
            continue;
        OCT_TRY(oct_pairs_find(models[0].graph, models[k].graph, &pairs, err));
        const oct_status s = list_rows(&pairs, &p[0], &p[k], runs, a, r, &r->models[k], err);
        oct_pairs_free(&pairs);
        OCT_TRY(s);
    }
    return OCT_OK;
}

oct_status ev_profile_models(ev_timed *t, size_t n, const oct_array *arrays, const oct_eval_model *models,
                             oct_pool *pool, oct_eval_result *r, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_status s = a ? ev_measure_machine(pool, &r->machine, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = profile(t, n, arrays, models, a, r, err);
    oct_arena_destroy(a);
    return s;
}
