/* The page of a conversion: its verdict in the form of qeval's page, and the record of decisions and changes. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"
#include "common/page_findings.h"
#include "eval/report/page.h"
#include "kernels/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the page borrows while it is written. */
typedef struct page_work {
    const session *s;
    oct_arena *arena;
    oct_lint *lint; /* findings about the written model */
    oct_page_model model[2];
    oct_eval_model_result of[2];
    oct_eval_result result;
} page_work;

/* ---- layers ---- */

static const char *weights_of(oct_arena *a, const oct_layer_decision *d)
{
    if (!d->weights)
        return NULL;
    if (d->block)
        return oct_arena_printf(a, "%s, blocks of %d", oct_dtype_name(d->weights), d->block);
    return oct_arena_printf(a, "%s%s", oct_dtype_name(d->weights),
                            !d->integer      ? ""
                            : d->per_channel ? ", per channel"
                                             : ", per tensor");
}

/* The reason in words: "by the rule 'any' (line 7 of the built-in policy); the target takes s8 activations" of "any
 * (built-in:7); the target ...". Of a rule of the user's the place stays as it is. */
static const char *reason_of(oct_arena *a, const char *why)
{
    static const char built_in[] = "built-in:";
    const char *place = oct_policy_place(why);
    if (!place || strncmp(place, built_in, sizeof built_in - 1) != 0)
        return place ? oct_arena_printf(a, "by the rule %s", why) : why;
    const char *line = place + sizeof built_in - 1, *end = strchr(line, ')');
    return oct_arena_printf(a, "by the rule '%.*s' (line %.*s of the built-in policy)%s", (int)(place - why - 2), why,
                            (int)(end - line), line, end + 1);
}

static oct_status take_layers(page_work *w, oct_err *err)
{
    const oct_conversion *c = &w->s->c;
    oct_page_layer *list = oct_arena_calloc(w->arena, c->n_layers + 1, sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_layers; i++) {
        const oct_layer *l = &c->layers[i];
        const oct_layer_decision *d = &l->d;
        list[i] = (oct_page_layer){ .name = l->name,
                                    .op = d->op,
                                    .scheme = d->integer && d->scheme == OCT_SCHEME_STATIC ? "int8"
                                                                                           : oct_scheme_name(d->scheme),
                                    .why = reason_of(w->arena, d->why),
                                    .weights = weights_of(w->arena, d),
                                    .remedy = d->remedy,
                                    .observer = d->observer,
                                    .sqnr_weights = d->sqnr_weights,
                                    .sqnr_output = d->sqnr_output,
                                    .loss = l->loss,
                                    .macs = (uint64_t)l->macs };
        if (!list[i].why)
            return oct_nomem(err);
    }
    w->model[1].layer = list;
    w->model[1].n_layers = c->n_layers;
    return OCT_OK;
}

/* ---- lists ---- */

static oct_status take_changes(page_work *w, oct_err *err)
{
    const oct_conversion *c = &w->s->c;
    oct_page_line *v = oct_arena_calloc(w->arena, c->n_changes + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_changes; i++)
        v[i] = (oct_page_line){ c->changes[i].pass, c->changes[i].node, c->changes[i].what };
    w->model[1].changes = (oct_page_lines){ v, c->n_changes };
    return OCT_OK;
}

static oct_status take_methods(page_work *w, oct_err *err)
{
    const oct_conversion *c = &w->s->c;
    oct_page_line *v = oct_arena_calloc(w->arena, c->n_methods + 1, sizeof *v);
    size_t n = 0;
    if (!v)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_methods; i++) {
        if (!c->methods[i].ran)
            continue;
        oct_buf text = OCT_BUF_INIT;
        oct_method_text(&c->methods[i], &text);
        v[n] = (oct_page_line){ c->methods[i].method->name, NULL,
                                text.failed ? NULL : oct_arena_strdup(w->arena, oct_buf_str(&text)) };
        oct_buf_free(&text);
        if (!v[n++].text)
            return oct_nomem(err);
    }
    w->model[1].methods = (oct_page_lines){ v, n };
    return OCT_OK;
}

static oct_status denormal_line(page_work *w, const oct_layer_denormals *d, oct_page_line *line, oct_err *err)
{
    const char *text =
        oct_arena_printf(w->arena, "%llu of %llu weights are denormal numbers, with which many CPUs are slow%s",
                         (unsigned long long)d->n, (unsigned long long)d->of,
                         d->zeros ? "; written as zeros" : "; they stay, as the layer does");
    *line = (oct_page_line){ "denormal", d->layer, text };
    return text ? OCT_OK : oct_nomem(err);
}

/* Lists warnings, layers that were left float because of their cost, denormal weights, and the findings of lint about
 * the written model. */
static oct_status take_findings(page_work *w, oct_err *err)
{
    const oct_conversion *c = &w->s->c;
    oct_lint_verdict v;
    oct_page_line *line;
    size_t n;
    OCT_TRY(oct_lint_open(c->m->graph, NULL, &w->lint, err));
    OCT_TRY(oct_lint_judge(w->lint, w->s->target, &v, err));
    OCT_TRY(tool_page_findings(w->lint, &v, w->s->target,
                               c->n_warnings - c->n_faults + c->n_promoted + c->n_denormal + 2, &line, &n, err));
    for (size_t i = 0; i < c->n_warnings; i++)
        if (i < c->first_fault || i >= c->first_fault + c->n_faults) /* the others are findings already */
            line[n++] = (oct_page_line){ "warning", NULL, c->warnings[i] };
    for (size_t i = 0; i < c->n_promoted; i++, n++) {
        const oct_promotion *p = &c->promoted[i];
        line[n] = (oct_page_line){ p->wide ? "16 bits" : "left float", p->layer,
                                   oct_arena_printf(w->arena, "rounding '%s' would cause %.0f %% of the loss", p->value,
                                                    100 * p->loss) };
        if (!line[n].text)
            return oct_nomem(err);
    }
    for (size_t i = 0; i < c->n_denormal; i++)
        OCT_TRY(denormal_line(w, &c->denormal[i], &line[n++], err));
    if (c->n_floats) {
        oct_buf text = OCT_BUF_INIT;
        oct_float_bytes_text(c->floats, c->n_floats, &text);
        line[n++] =
            (oct_page_line){ "size", NULL, text.failed ? NULL : oct_arena_strdup(w->arena, oct_buf_str(&text)) };
        oct_buf_free(&text);
        if (!line[n - 1].text)
            return oct_nomem(err);
    }
    if (c->unjudged)
        line[n++] = (oct_page_line){ "not judged", NULL, c->unjudged };
    w->model[1].findings = (oct_page_lines){ line, n };
    return OCT_OK;
}

static oct_status take_curve(page_work *w, oct_err *err)
{
    const oct_size_choice *x = &w->s->c.size;
    oct_page_point *v = oct_arena_calloc(w->arena, x->n + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    for (size_t i = 0; i < x->n; i++)
        v[i] = (oct_page_point){ x->point[i].bytes, x->point[i].sqnr, x->point[i].taken, x->point[i].layer,
                                 x->point[i].form };
    w->model[1].curve = v;
    w->model[1].n_curve = x->n;
    w->model[1].limit = (double)x->limit;
    return OCT_OK;
}

/* ---- the verdict as an evaluation ---- */

/* The verdict, with the size of the file. Without a verdict: models of which only the sizes are known. */
static void take_result(page_work *w)
{
    const oct_conversion *c = &w->s->c;
    if (c->verdict) {
        w->result = *c->verdict;
        memcpy(w->of, c->verdict->models, sizeof w->of);
    } else {
        w->result = (oct_eval_result){ .n_models = 2, .threads = (int)w->s->cli->threads };
        for (int k = 0; k < 2; k++)
            w->of[k] = (oct_eval_model_result){ .sqnr_db = NAN, .agreement = NAN };
    }
    w->of[0].name = w->s->a->model;
    w->of[1].name = w->s->output;
    w->of[0].size_bytes = c->size_before;
    w->of[1].size_bytes = c->size_after;
    w->result.models = w->of;
    w->result.isa = oct_isa_name(oct_isa_active());
}

static oct_status write_page(page_work *w, oct_err *err)
{
    const convert_args *a = w->s->a;
    oct_buf command = OCT_BUF_INIT, page = OCT_BUF_INIT;
    tool_command_line(&command, w->s->cli, a->argc, a->argv);
    static const char *const judged[] = { [OCT_JUDGED_OTHERS] = "that calibration did not see",
                                          [OCT_JUDGED_SAME] = "with which it was calibrated",
                                          [OCT_JUDGED_ANY] = NULL };
    const oct_page_notes notes = { .title = "Conversion",
                                   .samples = w->s->c.verdict ? judged[w->s->c.judged] : NULL,
                                   .command = oct_buf_str(&command),
                                   .model = w->model };
    const oct_report_context context = { .version = "octet " OCT_VERSION,
                                         .preprocess = w->s->src ? oct_source_preprocess(w->s->src) : NULL,
                                         .data = a->data.specs.v,
                                         .n_data = a->data.specs.n,
                                         .page = &notes };
    oct_report_html(&w->result, &context, &page);
    page.failed |= command.failed;
    const oct_status st = page.failed ? oct_nomem(err) : tool_write_text(a->html, &page, err);
    oct_buf_free(&command);
    oct_buf_free(&page);
    return st;
}

static oct_status fill(page_work *w, oct_err *err)
{
    OCT_TRY(take_layers(w, err));
    OCT_TRY(take_changes(w, err));
    OCT_TRY(take_methods(w, err));
    OCT_TRY(take_findings(w, err));
    OCT_TRY(take_curve(w, err));
    take_result(w);
    return write_page(w, err);
}

oct_status page_write(const session *s, oct_err *err)
{
    if (!s->a->html)
        return OCT_OK;
    page_work w = { .s = s, .arena = oct_arena_create() };
    const oct_status st = w.arena ? fill(&w, err) : oct_nomem(err);
    oct_lint_close(w.lint);
    oct_arena_destroy(w.arena);
    return st;
}
