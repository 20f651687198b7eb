/* The page of a conversion: its verdict in the form of qeval's page, and the record of decisions and changes. */
#include "api/convert/session_int.h"

#include "api/page_findings.h"
#include "kernels/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct page_work {
    const oct_session *s;
    oct_lint *lint; /* findings about the written model */
    oct_lint_verdict v;
    oct_eval_model_result of[2];
    oct_eval_result result;
} page_work;

/* ---- what was decided and changed ---- */

static void put_nodes(oct_json *j, const oct_conversion *c)
{
    oct_json_open(j, "nodes", '[');
    for (size_t i = 0; i < c->n_layers; i++) {
        oct_buf why = OCT_BUF_INIT;
        oct_session_reason(c->layers[i].d.why, &why);
        oct_json_open(j, NULL, '{');
        oct_report_layer(j, &c->layers[i], oct_buf_str(&why));
        oct_json_open(j, "from", '[');
        for (size_t k = 0; k < c->layers[i].n_from; k++)
            oct_json_int(j, NULL, c->layers[i].from[k]);
        oct_json_close(j);
        oct_json_close(j);
        oct_buf_free(&why);
    }
    oct_json_close(j);
}

/* Lists the findings of lint about the written model, warnings, layers that were left float because of their cost, and
 * denormal weights. */
static void put_findings(oct_json *j, const page_work *w)
{
    const oct_conversion *c = &w->s->c;
    char text[160];
    oct_json_open(j, "findings", '[');
    oct_put_findings(j, w->lint, &w->v, w->s->target);
    for (size_t i = 0; i < c->n_warnings; i++)
        if (i < c->first_fault || i >= c->first_fault + c->n_faults) /* the others are findings already */
            oct_put_finding(j, "warning", NULL, c->warnings[i]);
    for (size_t i = 0; i < c->n_promoted; i++) {
        oct_buf b = OCT_BUF_INIT;
        oct_buf_printf(&b, "rounding '%s' would cause %.0f %% of the loss", c->promoted[i].value,
                       100 * c->promoted[i].loss);
        oct_put_finding(j, c->promoted[i].wide ? "16 bits" : "left float", c->promoted[i].layer, oct_buf_str(&b));
        oct_buf_free(&b);
    }
    for (size_t i = 0; i < c->n_denormal; i++) {
        const oct_layer_denormals *d = &c->denormal[i];
        snprintf(text, sizeof text, "%llu of %llu weights are denormal numbers, with which many CPUs are slow%s",
                 (unsigned long long)d->n, (unsigned long long)d->of,
                 d->zeros ? "; written as zeros" : "; they stay, as the layer does");
        oct_put_finding(j, "denormal", d->layer, text);
    }
    if (c->n_floats) {
        oct_buf b = OCT_BUF_INIT;
        oct_float_bytes_text(c->floats, c->n_floats, &b);
        oct_put_finding(j, "size", NULL, oct_buf_str(&b));
        oct_buf_free(&b);
    }
    if (c->unjudged)
        oct_put_finding(j, "not judged", NULL, c->unjudged);
    oct_json_close(j);
}

static void put_notes(oct_json *j, size_t k, const void *notes)
{
    const page_work *w = notes;
    if (!k)
        return;
    oct_session_answer(w->s, j);
    put_nodes(j, &w->s->c);
    oct_report_passes(j, &w->s->c);
    oct_report_methods(j, &w->s->c);
    put_findings(j, w);
    oct_report_size(j, &w->s->c);
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
        w->result = (oct_eval_result){ .n_models = 2, .threads = w->s->x.threads };
        for (int k = 0; k < 2; k++)
            w->of[k] = (oct_eval_model_result){ .sqnr_db = NAN, .agreement = NAN };
    }
    w->of[0].name = w->s->x.model;
    w->of[1].name = w->s->output;
    w->of[0].size_bytes = c->size_before;
    w->of[1].size_bytes = c->size_after;
    w->result.models = w->of;
    w->result.isa = oct_isa_name(oct_isa_active());
}

static oct_status write_page(const page_work *w, oct_document *report, oct_err *err)
{
    static const char *const judged[] = { [OCT_JUDGED_OTHERS] = "that calibration did not see",
                                          [OCT_JUDGED_SAME] = "with which it was calibrated",
                                          [OCT_JUDGED_ANY] = NULL };
    oct_buf command = OCT_BUF_INIT, page = OCT_BUF_INIT;
    if (w->s->h.command)
        oct_buf_puts(&command, w->s->h.command);
    else
        oct_session_command(&w->s->x, false, &command);
    const oct_report_context context = { .title = "Conversion",
                                         .which = w->s->c.verdict ? judged[w->s->c.judged] : NULL,
                                         .command = oct_buf_str(&command),
                                         .put_notes = put_notes,
                                         .notes = w,
                                         .preprocess = w->s->src ? oct_source_preprocess(w->s->src) : NULL,
                                         .data = w->s->x.samples.data.v,
                                         .n_data = w->s->x.samples.data.n };
    oct_report_document(&w->result, &context, report);
    const oct_item *root = oct_document_root(report);
    if (root)
        oct_report_html(root, &page);
    const oct_status st =
        !root || command.failed || page.failed ? oct_nomem(err) : oct_write_text(w->s->x.html, &page, err);
    oct_buf_free(&command);
    oct_buf_free(&page);
    return st;
}

oct_status oct_session_page(const oct_session *s, oct_err *err)
{
    if (!s->x.html)
        return OCT_OK;
    page_work w = { .s = s };
    oct_document *report = oct_document_create();
    oct_status st = report ? oct_lint_open(s->c.m->graph, NULL, &w.lint, err) : oct_nomem(err);
    if (st == OCT_OK)
        st = oct_lint_judge(w.lint, s->target, &w.v, err);
    if (st == OCT_OK) {
        take_result(&w);
        st = write_page(&w, report, err);
    }
    oct_document_destroy(report);
    oct_lint_close(w.lint);
    return st;
}
