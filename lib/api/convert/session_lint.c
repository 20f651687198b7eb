/* How a target runs each node of a finished model, of schema "octet-lint-2". */
#include "api/inspect.h"

#include "api/convert/session_int.h"

#include "api/answer.h"
#include "api/convert/session_guess.h"
#include "quant/lint/examine.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64, GROUP_OPS = 3, SHOWN_GROUPS = 4 };

typedef struct linter {
    oct_session *s;
    oct_calib *table;
    oct_lint *l;
    oct_qjob *job; /* for a float model: the intended decisions of a conversion */
    oct_layer *layers;
    size_t n_layers;
    oct_lint_verdict v;    /* for the requested target */
    oct_lint_verdict *all; /* for every built-in target */
    size_t n_all;
} linter;

/* Layers with weights, their work in multiply-accumulates, and what of these runs on integers; of a float model, what
 * would. */
typedef struct share {
    size_t layers, integer;
    double macs, integer_macs;
} share;

/* ---- the report ---- */

static void put_node(oct_json *j, const void *row)
{
    static const char *const runs[] = { [OCT_STANDS_FLOAT] = "float",
                                        [OCT_STANDS_INTEGER] = "int8",
                                        [OCT_STANDS_BLOCKS] = "blocks",
                                        [OCT_STANDS_LEFT] = "left",
                                        [OCT_STANDS_APART] = "float" };
    const oct_lint_node *x = row;
    const oct_stand_kind kind = x->stand.kind;
    oct_json_str(j, "name", x->name);
    oct_json_str(j, "op", x->op);
    oct_json_str(j, "runs", runs[kind]);
    oct_json_bool(j, "integer", kind == OCT_STANDS_INTEGER);
    oct_json_bool(j, "lost", x->lost);
    oct_json_str(j, "why", x->stand.why);
    if (x->with)
        oct_json_str(j, "with", x->with);
}

static void put_findings(oct_json *j, const char *key, const oct_finding *f, size_t n, const oct_target *t)
{
    oct_json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "kind", oct_finding_name(f[i].kind));
        oct_json_str(j, "node", f[i].name);
        oct_json_str(j, "op", f[i].op);
        oct_json_str(j, "text", f[i].text);
        oct_json_bool(j, "concerns", oct_finding_concerns(&f[i], t));
        oct_json_close(j);
    }
    oct_json_close(j);
}

/* Why a file does not fit a target. */
static void misfit_text(const oct_lint_verdict *v, oct_buf *b)
{
    if (v->n_trap)
        oct_buf_printf(b, "the file does not load: '%s': %s", v->trap[0].name, v->trap[0].text);
    else if (v->lost)
        oct_buf_printf(b, "%zu of %zu quantized layers %s: '%s': %s", v->lost, v->layers,
                       v->left ? "are left to the runtime" : "run in float", v->first_lost, v->first_why);
    else if (v->saturating)
        oct_buf_printf(b, "sums of %zu layer%s may saturate at 16 bits", v->saturating, v->saturating == 1 ? "" : "s");
    else
        oct_buf_puts(b, "nothing in it runs on integers");
}

static void put_target(oct_json *j, const void *row)
{
    const oct_lint_verdict *v = row;
    oct_buf why = OCT_BUF_INIT;
    oct_json_str(j, "name", v->target);
    oct_json_bool(j, "fits", v->fits);
    oct_json_int(j, "nodes", (int64_t)v->n);
    oct_json_int(j, "integer_nodes", (int64_t)v->integer);
    oct_json_int(j, "quantized_layers", (int64_t)v->layers);
    oct_json_int(j, "float_layers", (int64_t)v->lost);
    oct_json_int(j, "saturating_layers", (int64_t)v->saturating);
    oct_json_int(j, "traps", (int64_t)v->n_trap);
    if (!v->fits) {
        misfit_text(v, &why);
        oct_json_str(j, "why", oct_buf_str(&why));
    }
    oct_buf_free(&why);
}

static share share_of(const linter *x)
{
    const oct_layer_count c = oct_layers_count(x->layers, x->n_layers);
    return x->l->quantized ? (share){ x->v.weighted, x->v.weighted_integer, x->v.macs, x->v.integer_macs }
                           : (share){ c.products, c.integer, (double)c.macs, (double)c.integer_macs };
}

/* ---- the answer ---- */

typedef struct answer {
    oct_json *j;
    oct_buf text, command;
} answer;

static void end_item(answer *a, const char *about)
{
    oct_answer_item(a->j, about, &a->text, &a->command);
}

/* "73 of 73 layers with weights run on integers: 99 % of the multiply-accumulates" */
static void put_share(const share *n, bool would, oct_buf *b)
{
    char macs[OCT_MACS_TEXT];
    oct_buf_printf(b, "%zu of %zu layer%s with weights %s on integers", n->integer, n->layers,
                   n->layers == 1 ? "" : "s",
                   would            ? "would run"
                   : n->layers == 1 ? "runs"
                                    : "run");
    if (n->macs > 0)
        oct_buf_printf(b, ": %s", oct_macs_text(macs, n->integer_macs / n->macs));
}

/* Whether a float model has nothing to quantize, as trees and linear models do. */
static bool stays(const linter *x)
{
    const oct_layer_count n = oct_layers_count(x->layers, x->n_layers);
    return !x->l->quantized && !n.products && !n.integer_nodes;
}

static void put_verdict(answer *a, const linter *x)
{
    const share n = share_of(x);
    const oct_lint_verdict *v = &x->v;
    const bool would = !x->l->quantized || v->n_trap;
    if (stays(x))
        oct_buf_printf(&a->text, "%s is a float model, and has nothing to quantize", x->s->x.model);
    else if (!x->l->quantized)
        oct_buf_printf(&a->text, "%s is a float model. Converted for %s, ", x->s->x.model, v->target);
    else
        oct_buf_printf(&a->text, "%s %s %s, where ", x->s->x.model,
                       v->n_trap ? "does not load in"
                       : v->fits ? "fits"
                                 : "does not fit",
                       v->target);
    if (x->l->quantized && v->weighted_blocks)
        oct_buf_printf(&a->text, "%zu of %zu layers with weights have them in blocks%s", v->weighted_blocks,
                       v->weighted, v->weighted_integer ? ", and " : "");
    if (!stays(x) && (!v->weighted_blocks || v->weighted_integer))
        put_share(&n, would, &a->text);
    oct_buf_puts(&a->text, ".");
    if (oct_target_rules_of(x->s->target)->proof == OCT_PROOF_NONE)
        oct_buf_puts(&a->text, " By rules only, untested there.");
    end_item(a, "file");
}

/* Nodes that stand in float for one reason, or findings of one kind and text. */
typedef struct group {
    const char *kind, *why, *first, *op[GROUP_OPS];
    size_t n, of_op[GROUP_OPS], others;
    double macs;
} group;

/* macs: of the node, 0 where the work does not matter */
static void add_to_groups(group *g, size_t *n, const char *kind, const char *why, const char *name, const char *op,
                          double macs)
{
    size_t i = 0, k = 0;
    while (i < *n && (strcmp(g[i].why, why) != 0 || strcmp(g[i].kind, kind) != 0))
        i++;
    if (i == GROUPS)
        return;
    if (i == *n)
        g[(*n)++] = (group){ .kind = kind, .why = why, .first = name };
    g[i].n++;
    g[i].macs += macs;
    while (k < GROUP_OPS && g[i].op[k] && strcmp(g[i].op[k], op) != 0)
        k++;
    if (k == GROUP_OPS) {
        g[i].others++;
    } else {
        g[i].op[k] = op;
        g[i].of_op[k]++;
    }
}

static int by_work(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return x->macs != y->macs ? (x->macs > y->macs ? -1 : 1)
           : x->n != y->n     ? (x->n > y->n ? -1 : 1)
                              : strcmp(x->first, y->first);
}

/* "3 Add, 1 Resize (add1 ...): the target interpolates in float." */
static void put_groups(answer *a, group *g, size_t n, const char *about)
{
    if (n)
        qsort(g, n, sizeof *g, by_work);
    for (size_t i = 0; i < n && i < SHOWN_GROUPS; i++) {
        if (*g[i].kind)
            oct_buf_printf(&a->text, "%s: ", g[i].kind);
        for (size_t k = 0; k < GROUP_OPS && g[i].op[k]; k++)
            oct_buf_printf(&a->text, "%s%zu %s", k ? ", " : "", g[i].of_op[k], g[i].op[k]);
        if (g[i].others)
            oct_buf_printf(&a->text, ", %zu other%s", g[i].others, g[i].others == 1 ? "" : "s");
        oct_buf_printf(&a->text, " (%s%s): ", g[i].first, g[i].n > 1 ? " ..." : "");
        oct_session_reason(g[i].why, &a->text);
        oct_buf_puts(&a->text, ".");
        end_item(a, about);
    }
    if (n > SHOWN_GROUPS) {
        oct_buf_printf(&a->text, "%zu more reason%s: -v shows all.", n - SHOWN_GROUPS,
                       n - SHOWN_GROUPS == 1 ? "" : "s");
        end_item(a, about);
    }
}

static void put_floats(answer *a, const linter *x)
{
    group g[GROUPS];
    size_t n = 0;
    for (size_t i = 0; x->l->quantized && i < x->v.n; i++) {
        const oct_lint_node *v = &x->v.node[i];
        if (v->stand.kind == OCT_STANDS_FLOAT || v->stand.kind == OCT_STANDS_LEFT)
            add_to_groups(g, &n, "", v->stand.why, v->name, v->op, v->macs);
    }
    for (size_t i = 0; !x->l->quantized && i < x->n_layers; i++)
        if (!oct_layer_is_quantized(&x->layers[i]))
            add_to_groups(g, &n, "", x->layers[i].d.why, x->layers[i].name, x->layers[i].d.op,
                          (double)x->layers[i].macs);
    put_groups(a, g, n, "float");
}

static void put_problems(answer *a, const linter *x)
{
    group g[GROUPS];
    size_t n = 0;
    for (size_t i = 0; i < x->v.n_trap; i++)
        add_to_groups(g, &n, "does not load", x->v.trap[i].text, x->v.trap[i].name, x->v.trap[i].op, 0);
    for (size_t i = 0; i < x->l->n_finding; i++) {
        const oct_finding *f = &x->l->finding[i];
        if (oct_finding_concerns(f, x->s->target))
            add_to_groups(g, &n, oct_finding_name(f->kind), f->text, f->name, f->op, 0);
    }
    put_groups(a, g, n, "findings");
}

/* The targets that the file fits, and those that it does not, by the reason. Every target loads a float model, but
 * for traps. */
static void put_targets(answer *a, const linter *x)
{
    const oct_lint_verdict *v = x->all;
    oct_buf why = OCT_BUF_INIT, other = OCT_BUF_INIT;
    size_t n = 0;
    for (size_t i = 0; x->l->quantized && i < x->n_all; i++)
        if (v[i].fits)
            oct_buf_printf(&a->text, "%s%s", n++ ? ", " : "", v[i].target);
    if (n) {
        oct_buf_puts(&a->text, ".");
        end_item(a, "fits");
    }
    for (size_t i = 0; i < x->n_all; i++) {
        bool first = true;
        oct_buf_cut(&why, 0);
        if (v[i].fits)
            continue;
        misfit_text(&v[i], &why);
        for (size_t k = 0; k < x->n_all; k++) {
            oct_buf_cut(&other, 0);
            if (v[k].fits)
                continue;
            misfit_text(&v[k], &other);
            if (strcmp(oct_buf_str(&why), oct_buf_str(&other)) != 0)
                continue;
            first &= k >= i;
            if (first)
                oct_buf_printf(&a->text, "%s%s", a->text.len ? ", " : "", v[k].target);
        }
        if (first) {
            oct_buf_printf(&a->text, ": %s.", oct_buf_str(&why));
            end_item(a, "not");
        }
        oct_buf_cut(&a->text, 0);
    }
    size_t unfit = 0;
    for (size_t i = 0; x->l->quantized && i < x->n_all; i++)
        unfit += !v[i].fits;
    if (unfit) {
        oct_buf_puts(&a->text, "For one of these, convert the float model with --target NAME.");
        end_item(a, "not");
    }
    oct_buf_free(&why);
    oct_buf_free(&other);
}

/* A float model is converted next. */
static void put_next(answer *a, const linter *x)
{
    oct_picture p = { .pixels = x->s->pixels };
    if (x->l->quantized || stays(x) || x->s->x.model_data || strcmp(x->s->x.model, "-") == 0)
        return;
    p.is = oct_guess_picture(x->l->g, &p);
    oct_buf_printf(&a->text, "To convert it, with some 100 typical samples%s:", oct_guess_said(&p));
    oct_session_command(&x->s->x, false, &a->command);
    oct_guess_data(x->l->g, &p, &a->command);
    end_item(a, "next");
}

static void put_answer(const void *of, oct_json *j)
{
    const linter *x = of;
    answer a = { .j = j };
    oct_json_open(j, "answer", '[');
    put_verdict(&a, x);
    put_problems(&a, x);
    put_floats(&a, x);
    put_targets(&a, x);
    put_next(&a, x);
    oct_json_close(j);
    oct_buf_free(&a.text);
    oct_buf_free(&a.command);
}

static void put_report(const linter *x, oct_document *to)
{
    const oct_layer_count c = oct_layers_count(x->layers, x->n_layers);
    const bool quantized = x->l->quantized;
    oct_json json = { .to = to }, *j = &json;
    oct_report_open(j, "octet-lint-2");
    oct_json_str(j, "model", x->s->x.model);
    oct_json_str(j, "target", x->v.target);
    oct_json_bool(j, "quantized", quantized);
    oct_json_int(j, "counted_nodes", (int64_t)(quantized ? x->v.n : c.nodes));
    oct_json_int(j, "integer_nodes", (int64_t)(quantized ? x->v.integer : c.integer_nodes));
    const share n = share_of(x);
    oct_json_int(j, "layers_with_weights", (int64_t)n.layers);
    oct_json_int(j, "integer_layers", (int64_t)n.integer);
    if (n.macs > 0)
        oct_json_num(j, "integer_share", n.integer_macs / n.macs);
    oct_json_bool(j, "fits", x->l->quantized && x->v.fits);
    put_answer(x, j);
    oct_answer_next(j, put_answer, x);
    oct_json_rows(j, "nodes", x->v.node, x->v.n, sizeof *x->v.node, put_node);
    oct_json_rows(j, "conversion", x->layers, x->n_layers, sizeof *x->layers, oct_report_decision);
    put_findings(j, "findings", x->l->finding, x->l->n_finding, x->s->target);
    put_findings(j, "traps", x->v.trap, x->v.n_trap, x->s->target);
    oct_json_rows(j, "targets", x->all, x->n_all, sizeof *x->all, put_target);
    oct_json_close(j);
}

/* ---- the whole ---- */

static oct_status judge_all(linter *x, oct_err *err)
{
    size_t n = 0;
    while (oct_target_builtin(n, NULL))
        n++;
    OCT_TRY(oct_lint_judge(x->l, x->s->target, &x->v, err));
    if (!(x->all = oct_arena_calloc(x->l->arena, n + 1, sizeof *x->all)))
        return oct_nomem(err);
    if (x->s->m->other_format) /* other targets do not load the file, whatever its layers are */
        return OCT_OK;
    for (; x->n_all < n; x->n_all++) {
        oct_target *t;
        OCT_TRY(oct_target_open(oct_target_builtin(x->n_all, NULL), &t, err));
        const oct_status s = oct_lint_judge(x->l, t, &x->all[x->n_all], err);
        oct_lint_verdict *v = &x->all[x->n_all];
        v->target = oct_target_builtin(x->n_all, NULL);
        const char *why = v->first_why ? v->first_why : "";
        v->first_why = oct_arena_strdup(
            x->l->arena, why); /* this text belongs to the target, which is closed; its nodes are not needed again */
        oct_target_close(t);
        OCT_TRY(s);
        if (!v->first_why)
            return oct_nomem(err);
    }
    return OCT_OK;
}

/* A .tflite file is for LiteRT: no other runtime that is a target reads it as it stands. */
static oct_status take_target_of_file(oct_session *s, oct_err *err)
{
    if (s->x.target || !s->m->other_format)
        return OCT_OK;
    oct_target *t;
    OCT_TRY(oct_target_open(s->x.target = OCT_TARGET_OF_TFLITE, &t, err));
    s->x.format = OCT_FORMAT_TFLITE; /* of what the next command makes */
    oct_target_close(s->target);
    s->c.o.job.target = s->target = t;
    return OCT_OK;
}

static oct_status lint(linter *x, const octet_convert_options *options, const oct_session_host *h, oct_document *to,
                       oct_err *err)
{
    OCT_TRY(oct_session_open(options, h, &x->s, err));
    OCT_TRY(take_target_of_file(x->s, err));
    if (oct_target_rules_of(x->s->target)->proof == OCT_PROOF_NONE)
        oct_say(h->voice, 1, OCT_RULES_ONLY, oct_target_name(x->s->target));
    if (options->calib)
        OCT_TRY(oct_calib_load(options->calib, &x->table, err));
    if (x->s->m->graph->n_input)
        x->s->pixels = oct_input_pixels(x->s->m->graph, x->s->m->graph->input[0]);
    OCT_TRY_WITHIN(oct_lint_open(x->s->m->graph, x->table, &x->l, err), err, "%s", options->model);
    OCT_TRY(judge_all(x, err));
    if (!x->l->quantized) /* last, because it changes the model's graph */
        OCT_TRY_WITHIN(oct_session_preview(x->s, x->s->m->graph, &x->job, &x->layers, &x->n_layers, err), err, "%s",
                       options->model);
    put_report(x, to);
    return OCT_OK;
}

oct_status oct_session_lint(const octet_convert_options *x, const oct_session_host *h, oct_document *to, oct_err *err)
{
    linter l = { .job = NULL };
    oct_session_host host = *h;
    host.no_save = true;
    const oct_status s = lint(&l, x, &host, to, err);
    oct_qjob_destroy(l.job);
    oct_lint_close(l.l);
    oct_calib_destroy(l.table);
    oct_session_close(l.s);
    return s;
}
