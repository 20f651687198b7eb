/* --dump and --print-plan: what a model computes on the first sample, and by which steps. */
#define _XOPEN_SOURCE 700
#include "api/evaluation_int.h"

#include "base/io.h"
#include "base/utf8.h"
#include "data/arrays/npy.h"
#include "graph/graph_text.h"
#include "runtime/runner.h"

#include <fnmatch.h>
#include <string.h>

/* A value that is written. */
typedef struct dumped {
    const char *name; /* of the value */
    const char *path;
    bool named; /* not by a pattern */
    bool written;
} dumped;

typedef struct dump {
    oct_evaluation *e;
    oct_arena *arena;
    const char **taps; /* [n], the names */
    dumped *v;         /* [n] */
    size_t n, cap_taps, cap;
} dump;

/* FOLDER/name.npy, where the name has no slash. */
static const char *path_in(oct_arena *a, const char *folder, const char *name)
{
    char *path = oct_arena_printf(a, "%s%s.npy", folder, name);
    for (char *s = path ? path + strlen(folder) : NULL; s && *s; s++)
        *s = *s == '/' ? '_' : *s;
    return path;
}

static oct_status add(dump *d, const char *name, const char *path, bool named, oct_err *err)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->v[i].name, name) == 0)
            return oct_fail(err, OCT_EUSAGE, "--dump: '%s' is asked for twice", name);
    const size_t n = d->n;
    if (!path || !OCT_GROW(d->arena, d->v, d->n, d->cap) || !OCT_GROW(d->arena, d->taps, n, d->cap_taps))
        return oct_nomem(err);
    d->taps[d->n] = name;
    d->v[d->n++] = (dumped){ .name = name, .path = path, .named = named };
    return OCT_OK;
}

/* Whether a pattern fits a value: its name, or that of the node that computes it. */
static bool fits(const oct_graph *g, int value, const char *pattern)
{
    const oct_value *v = &g->value[value];
    if (v->dead || v->constant || (v->producer < 0 && !v->is_input))
        return false;
    return fnmatch(pattern, oct_value_name(g, value), 0) == 0 ||
           (v->producer >= 0 && *g->node[v->producer].name && fnmatch(pattern, g->node[v->producer].name, 0) == 0);
}

/* One NODE=FILE. */
static oct_status take(dump *d, const oct_graph *g, const char *option, oct_err *err)
{
    const char *sep = strrchr(option, '=');
    if (!sep || sep == option || !sep[1]) {
        oct_fail(err, OCT_EUSAGE, "--dump %s: not NODE=FILE.npy", option);
        oct_hint(err, "the name of a node or value, or a pattern (conv*), then where to write: a file, or a folder/");
        return OCT_EUSAGE;
    }
    const char *pattern = oct_arena_printf(d->arena, "%.*s", (int)(sep - option), option), *to = sep + 1;
    if (!pattern)
        return oct_nomem(err);
    const bool folder = to[strlen(to) - 1] == '/';
    size_t found = 0;
    for (size_t v = 0; v < g->n_value; v++)
        if (fits(g, (int)v, pattern) && ++found && (folder || found == 1)) {
            const char *name = oct_value_name(g, (int)v);
            OCT_TRY(add(d, name, folder ? path_in(d->arena, to, name) : to, !strpbrk(pattern, "*?["), err));
        }
    if (found > 1 && !folder) {
        oct_fail(err, OCT_EUSAGE, "--dump %s: %zu values fit, and there is one file", option, found);
        oct_hint(err, "give a folder: --dump '%s=FOLDER/'", pattern);
        return OCT_EUSAGE;
    }
    if (!found) {
        oct_fail(err, OCT_EUSAGE, "--dump %s: the model has no node or value of that name", option);
        oct_hint(err, "'qconvert MODEL --print-graph read' shows all names");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

/* Writes the numbers that an operand stands for: float32, but integers and truth values as they are. */
static oct_status write_operand(const oct_operand *x, const char *path, oct_err *err)
{
    const bool plain = !x->q && x->layout == OCT_LAYOUT_PLAIN && x->dtype != OCT_F16 && x->dtype != OCT_BF16;
    const oct_dtype type = plain ? x->dtype : OCT_F32;
    oct_buf header = OCT_BUF_INIT;
    oct_out o;
    if (!oct_npy_header(&header, type, x->rank, x->dims, 0)) {
        oct_buf_free(&header);
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: .npy has no %s", path, oct_dtype_name(type));
    }
    size_t bytes = 0; /* of a tensor that is in memory, so that it fits */
    (void)oct_dtype_bytes(type, x->count, &bytes);
    float *reals = plain ? NULL : oct_alloc(bytes ? bytes : 1);
    oct_status s = plain || reals ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK && !plain)
        s = oct_operand_to_f32(x, reals, err);
    if (s == OCT_OK)
        s = oct_out_open(&o, path, err);
    if (s == OCT_OK) {
        oct_out_write(&o, header.data, header.len);
        oct_out_write(&o, plain ? x->data : reals, bytes);
        s = oct_out_commit(&o, err);
    }
    oct_free(reals);
    oct_buf_free(&header);
    return s;
}

static oct_status look(void *arg, size_t tap, const oct_operand *x, oct_err *err)
{
    dump *d = arg;
    dumped *v = &d->v[tap];
    if (v->written)
        return OCT_OK;
    OCT_TRY(write_operand(x, v->path, err));
    v->written = true;
    oct_buf b = OCT_BUF_INIT;
    oct_buf_printf(&b, "%s [", oct_dtype_name(x->dtype));
    for (int k = 0; k < x->rank; k++)
        oct_buf_printf(&b, "%s%lld", k ? "," : "", (long long)x->dims[k]);
    oct_buf_puts(&b, "]");
    if (x->q && x->q->n == 1)
        oct_buf_printf(&b, " scale %.9g zero point %d", (double)x->q->scale[0], (int)x->q->zp[0]);
    oct_say(d->e->h.voice, 0, "%s: '%s', %s", v->path, v->name, oct_buf_str(&b));
    oct_buf_free(&b);
    return OCT_OK;
}

/* ---- the plan ---- */

static void put_steps(const oct_plan *p, oct_buf *b)
{
    for (size_t i = 0; i < oct_plan_n_steps(p); i++) {
        const oct_step_info s = oct_plan_step(p, i);
        oct_text_clean(b, s.op, false);
        oct_buf_puts(b, " '");
        oct_text_clean(b, s.name, false);
        oct_buf_printf(b, "' %s", s.scheme);
        if (*s.algorithm)
            oct_buf_printf(b, ", %s", s.algorithm);
        if (*s.kernel)
            oct_buf_printf(b, ", %s", s.kernel);
        oct_buf_puts(b, " -> ");
        oct_text_clean(b, *s.value ? s.value : "-", false);
        if (s.macs)
            oct_buf_printf(b, ", %llu multiply-accumulates", (unsigned long long)s.macs);
        oct_buf_printf(b, ", %llu bytes\n", (unsigned long long)s.bytes);
    }
    const oct_plan_memory m = oct_plan_memory_of(p);
    oct_buf_printf(b, "memory: %zu bytes for tensors (%zu alive at once), %zu of packed weights, %zu of scratch\n",
                   m.arena, m.live, m.weights, m.scratch);
}

static oct_status run(oct_evaluation *e, dump *d, oct_buf *steps, oct_err *err)
{
    const oct_eval_model *m = &e->models[0];
    oct_batch batch = { 0 };
    oct_runner *r = NULL;
    oct_plan *plan;
    const oct_plan_opts o = { .pool = e->pool, .taps = d->taps, .n_taps = d->n, .bf16 = m->bf16 };
    oct_status s = oct_runner_create(m->graph, &o, NULL, 0, &r, err);
    if (s == OCT_OK) {
        oct_runner_set_tap(r, look, d);
        s = oct_source_next(e->src, 1, &batch, err);
    }
    if (s == OCT_OK && batch.n == 0)
        s = oct_fail(err, OCT_EUSAGE, "there is no sample");
    if (s == OCT_OK && (s = oct_runner_run(r, batch.tensors, &plan, err)) == OCT_OK && steps)
        put_steps(plan, steps);
    oct_batch_free(&batch);
    oct_runner_destroy(r);
    return s;
}

oct_status oct_evaluation_look_inside(oct_evaluation *e, octet_texts nodes, oct_buf *steps, oct_err *err)
{
    dump d = { .e = e, .arena = e->arena };
    if (e->n_models > 1 || e->x.runner || e->twin)
        return oct_fail(err, OCT_EUSAGE, "--dump and --print-plan look into one model, in this runtime");
    OCT_TRY(oct_evaluation_open_samples(e, err));
    for (size_t i = 0; i < nodes.n; i++)
        OCT_TRY(take(&d, e->models[0].graph, nodes.v[i], err));
    for (size_t i = 0; i < d.n; i++)
        OCT_TRY(oct_check_output(d.v[i].path, &e->x.model, 1, err));
    const oct_status s = run(e, &d, steps, err);
    if (s == OCT_EUNSUPPORTED || s == OCT_ENUMERIC)
        oct_within(err, "%s", e->x.model);
    OCT_TRY(s);
    for (size_t i = 0; i < d.n; i++)
        if (!d.v[i].written && d.v[i].named)
            oct_say(e->h.voice, OCT_NOTE_WARNING,
                    "'%s' is not computed when the model runs: it follows from shapes, or from a fused operator",
                    d.v[i].name);
    return OCT_OK;
}
