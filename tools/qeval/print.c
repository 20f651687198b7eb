/* Prints qeval's tables. */
#include "qeval.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORST = 8, PROFILE_ROWS = 30 };

static const char *value_text(char dst[48], const oct_metric *m, double v)
{
    char num[32];
    if (isnan(v))
        return "";
    if (oct_metric_in_percent(m))
        snprintf(dst, 48, "%s", oct_fmt_percent(num, v));
    else if (strcmp(m->unit, "dB") == 0)
        snprintf(dst, 48, "%s", oct_fmt_db(num, v));
    else
        snprintf(dst, 48, "%.6g", v);
    return dst;
}

static const char *ratio_text(char dst[64], double reference, double value, const char *better, const char *worse)
{
    if (!(reference > 0) || !(value > 0))
        return "";
    if (value == reference)
        return "the same";
    if (value <= reference)
        snprintf(dst, 64, "%.2f times %s", reference / value, better);
    else
        snprintf(dst, 64, "%.2f times %s", value / reference, worse);
    return dst;
}

/* ---- the rows of the first table ---- */

static void score_rows(oct_table *t, const oct_eval_result *r)
{
    char text[48], drop[OCT_DROP_TEXT];
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_metric *m = r->models[0].scores[i].metric;
        oct_table_row(t);
        oct_table_cell(t, "%s", m->name);
        for (size_t k = 0; k < r->n_models; k++)
            oct_table_cell(t, "%s", value_text(text, m, r->models[k].scores[i].value));
        if (r->n_models == 2 && !m->relative)
            oct_table_cell(t, "%s", oct_report_drop(drop, &r->models[1].scores[i]));
    }
}

/* If several models are compared with the float model: a line below the table for each metric and model, with the
 * difference, and one for its speed. */
static void print_drops(const oct_eval_result *r, FILE *f)
{
    char drop[OCT_DROP_TEXT], speed[OCT_SPEED_TEXT];
    for (size_t k = 1; k < r->n_models && r->n_models > 2; k++) {
        for (size_t i = 0; i < r->n_scores; i++) {
            const oct_eval_score *s = &r->models[k].scores[i];
            if (!s->metric->relative && !isnan(s->drop))
                oct_print(f, "%s, %s: %s\n", tool_base(r->models[k].name), s->metric->name, oct_report_drop(drop, s));
        }
        if (r->models[k].speed.runs)
            oct_print(f, "%s, latency: %s\n", tool_base(r->models[k].name),
                      oct_report_speed(speed, &r->models[k].speed));
    }
}

/* A line for each gate, model by model: a mark and a text. */
static void print_gates(const oct_eval_result *r, const oct_report_context *c, FILE *f)
{
    char text[OCT_GATE_TEXT];
    for (size_t i = 0; i < c->n_gates; i++) {
        const oct_gate_result *g = &c->gates[i];
        const bool first = i == 0 || c->gates[i - 1].model != g->model;
        if (first)
            oct_print(f, r->n_models > 2 ? "\ngates of %s\n" : "\ngates\n", tool_base(r->models[g->model].name));
        oct_print(f, "  %-7s %s\n",
                  g->unsure ? g->met ? "met?" : "MISSED?"
                  : g->met  ? "met"
                            : "MISSED",
                  oct_report_gate_result(text, g));
    }
}

/* Explains the intervals, if there are any. */
static void print_method(const oct_eval_result *r, FILE *f)
{
    const char *said[3] = { NULL };
    size_t n = 0;
    for (size_t i = 0; r->n_models > 1 && i < r->n_scores && n < OCT_COUNT(said); i++) {
        const oct_eval_score *s = &r->models[1].scores[i];
        bool known = !s->method || s->metric->relative;
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(said[k], s->method) == 0;
        if (!known)
            said[n++] = s->method;
    }
    for (size_t i = 0; i < n; i++)
        oct_print(f, "%s%s", i ? ", " : "95 % intervals of paired differences: ", said[i]);
    fputs(n ? "\n" : "", f);
}

static bool is_wide(const oct_eval_latency *l)
{
    return oct_is_scattered(l->q1, l->median, l->q3);
}

static void latency_row(oct_table *t, const oct_eval_result *r)
{
    if (!r->models[0].latency.runs)
        return;
    char a[32], b[32], c[32], words[OCT_SPEED_TEXT];
    oct_table_row(t);
    oct_table_cell(t, "latency");
    for (size_t k = 0; k < r->n_models; k++)
        oct_table_cell(t, "%s%s", is_wide(&r->models[k].latency) ? "~" : "",
                       oct_fmt_ms(a, r->models[k].latency.median));
    if (r->n_models == 2)
        oct_table_cell(t, "%s", oct_report_speed(words, &r->models[1].speed));
    oct_table_row(t);
    oct_table_cell(t, "  quartiles");
    for (size_t k = 0; k < r->n_models; k++) {
        oct_fmt_ms(b, r->models[k].latency.q1);
        b[strcspn(b, " ")] = 0;
        oct_table_cell(t, "%s-%s", b, oct_fmt_ms(c, r->models[k].latency.q3));
    }
    if (r->n_models == 2)
        oct_table_cell(t, "%d runs in turn, %d thread%s", r->models[0].latency.runs, r->threads,
                       r->threads == 1 ? "" : "s");
}

static void size_rows(oct_table *t, const oct_eval_result *r)
{
    char text[32], ratio[64];
    for (int row = 0; row < 2; row++) {
        oct_table_row(t);
        oct_table_cell(t, "%s", row ? "memory" : "size");
        for (size_t k = 0; k < r->n_models; k++)
            oct_table_cell(t, "%s",
                           row && r->models[k].runner
                               ? "not known"
                               : oct_fmt_bytes(text, row ? r->models[k].peak_bytes : r->models[k].size_bytes));
        if (r->n_models == 2) {
            const oct_eval_model_result *f = &r->models[0], *q = &r->models[1];
            oct_table_cell(t, "%s",
                           ratio_text(ratio, (double)(row ? f->peak_bytes : f->size_bytes),
                                      (double)(row ? q->peak_bytes : q->size_bytes), row ? "less" : "smaller",
                                      row ? "more" : "larger"));
        }
    }
    oct_table_row(t);
    oct_table_cell(t, "int8 layers");
    for (size_t k = 0; k < r->n_models; k++)
        if (r->models[k].runner)
            oct_table_cell(t, "not known");
        else
            oct_table_cell(t, "%zu of %zu", r->models[k].integer_steps, r->models[k].weighted_steps);
    if (r->n_models == 2)
        oct_table_cell(t, "Conv, Gemm, MatMul");
}

static oct_status print_summary(const oct_eval_result *r, FILE *f, oct_err *err)
{
    oct_table *t = oct_table_create();
    oct_table_column(t, "", OCT_LEFT);
    for (size_t k = 0; k < r->n_models; k++) {
        char title[24];
        snprintf(title, sizeof title,
                 r->n_models > 2 && k ? "quant %zu"
                 : k                  ? "quant"
                 : r->n_models > 1    ? "float"
                                      : "model",
                 k);
        oct_table_column(t, title, OCT_RIGHT);
    }
    if (r->n_models == 2)
        oct_table_column(t, "difference", OCT_LEFT);
    score_rows(t, r);
    latency_row(t, r);
    size_rows(t, r);
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

/* ---- outputs, layers, steps ---- */

/* Whether there is more to say of the outputs than what the metrics say. */
static bool needs_outputs(const oct_eval_result *r, const oct_eval_model_result *m)
{
    bool needs = r->n_outputs > 1;
    for (size_t i = 0; i < r->n_outputs; i++)
        needs |= m->outputs[i].apart > 0;
    return needs;
}

static void number_cell(oct_table *t, const char *form, double v)
{
    char text[32] = "";
    if (!isnan(v))
        snprintf(text, sizeof text, form, v);
    oct_table_cell(t, "%s", text);
}

static oct_status print_outputs(const oct_eval_result *r, const oct_eval_model_result *m, FILE *f, oct_err *err)
{
    char db[32];
    bool codes = false, apart = false;
    for (size_t i = 0; i < r->n_outputs; i++) {
        codes |= !oct_output_is_numbers(m->outputs[i].form);
        apart |= m->outputs[i].apart > 0;
    }
    oct_table *t = oct_table_of(codes && apart   ? "lrrrrr"
                                : codes || apart ? "lrrrr"
                                                 : "lrrr",
                                (const char *[]){ "output", "SQNR", "cosine", "max error",
                                                  codes ? "matched" : "other length", "other length" });
    for (size_t i = 0; i < r->n_outputs; i++) {
        const oct_eval_output *o = &m->outputs[i];
        const bool numbers = !isnan(o->sqnr_db) || o->broken;
        oct_table_row(t);
        oct_table_cell(t, "%s", o->name);
        oct_table_cell(t, "%s", numbers ? oct_fmt_db(db, o->sqnr_db) : "");
        number_cell(t, "%.6f", o->cosine);
        number_cell(t, "%.4g", o->max_abs);
        if (codes)
            number_cell(t, "%.2f %%", 100 * o->matched);
        if (apart && o->apart)
            oct_table_cell(t, "%llu of %lld samples", (unsigned long long)o->apart, (long long)r->samples);
        else if (apart)
            oct_table_cell(t, "%s", "");
    }
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static const char *share_text(char dst[32], double share)
{
    if (!(share > 0))
        return "";
    if (share < 5e-4)
        return "< 0.1 %";
    snprintf(dst, 32, "%.1f %%", 100 * share);
    return dst;
}

static oct_status print_layers(const oct_eval_model_result *m, bool all, FILE *f, oct_err *err)
{
    char db[32];
    size_t n = all || m->n_layers < WORST ? m->n_layers : WORST;
    oct_table *t = oct_table_of("lllrrrrrr", (const char *[]){ "layer", "op", "scheme", "own", "SQNR", "saturated",
                                                               "codes", "dead", "weights" });
    for (size_t i = 0; i < n; i++) {
        const oct_eval_layer *l = &m->layers[i];
        oct_table_row(t);
        oct_table_cell(t, "%s", l->name);
        oct_table_cell(t, "%s", l->op);
        oct_table_cell(t, "%s", l->scheme);
        oct_table_cell(t, "%s", l->has_own ? oct_fmt_db(db, l->own_sqnr_db) : "");
        oct_table_cell(t, "%s", oct_fmt_db(db, l->sqnr_db));
        oct_table_cell(t, "%s", share_text(db, l->saturated));
        oct_table_cell(t, "%s", share_text(db, l->used));
        if (l->dead)
            oct_table_cell(t, "%lld of %lld", (long long)l->dead, (long long)l->channels);
        else
            oct_table_cell(t, "%s", "");
        oct_table_cell(t, "%s", l->weights.name ? oct_fmt_db(db, l->weights.sqnr_db) : "");
    }
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

/* Explains the columns, and how layers were matched if not by names alone. */
static void print_legend(const oct_eval_model_result *m, FILE *f)
{
    size_t by[3] = { 0 };
    for (size_t i = 0; i < m->n_layers; i++)
        by[m->layers[i].how]++;
    oct_print(
        f,
        "saturated: values beyond the range; codes: share of the quantized values that occur; dead: channels that are constant only here; weights: SQNR of the weights\n");
    if (by[OCT_PAIR_NAME] == m->n_layers)
        return;
    oct_print(f, "of %zu layers %zu were found by name, %zu by structure, %zu by weights\n", m->n_layers,
              by[OCT_PAIR_NAME], by[OCT_PAIR_STRUCTURE], by[OCT_PAIR_WEIGHTS]);
}

static oct_status print_steps(const oct_eval_model_result *m, bool all, FILE *f, oct_err *err)
{
    char ms[32], bytes[32];
    double sum = 0;
    size_t n = all || m->n_steps < PROFILE_ROWS ? m->n_steps : PROFILE_ROWS;
    oct_table *t = oct_table_of("lllrrrrll", (const char *[]){ "step", "op", "scheme", "time", "share", "GOP/s",
                                                               "bytes", "algorithm", "kernel" });
    for (size_t i = 0; i < m->n_steps; i++)
        sum += m->steps[i].seconds;
    for (size_t i = 0; i < n; i++) {
        const oct_eval_step *s = &m->steps[i];
        oct_table_row(t);
        oct_table_cell(t, "%s", s->name);
        oct_table_cell(t, "%s", s->op);
        oct_table_cell(t, "%s", s->scheme);
        oct_table_cell(t, "%s%s", s->scattered ? "~" : "", oct_fmt_ms(ms, s->seconds));
        oct_table_cell(t, "%.1f %%", sum > 0 ? 100 * s->seconds / sum : 0);
        if (s->macs && s->seconds > 0 && !s->scattered)
            oct_table_cell(t, "%.1f", 2 * (double)s->macs / s->seconds * 1e-9);
        else
            oct_table_cell(t, "%s", "");
        oct_table_cell(t, "%s", oct_fmt_bytes(bytes, s->bytes));
        oct_table_cell(t, "%s", s->algorithm);
        oct_table_cell(t, "%s", s->kernel);
    }
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return st;
}

/* Time, rate and share of the peak for one side of a row. A time that varies widely is marked, and its rate is left
 * out. */
static void cost_cells(oct_table *t, const oct_eval_cost *c)
{
    char ms[32];
    if (!c->steps) {
        oct_table_cell(t, "%s", "");
        oct_table_cell(t, "%s", "");
        oct_table_cell(t, "%s", "");
        return;
    }
    const bool rated = c->macs && c->seconds > 0 && !c->scattered;
    oct_table_cell(t, "%s%s", c->scattered ? "~" : "", oct_fmt_ms(ms, c->seconds));
    if (rated)
        oct_table_cell(t, "%.1f", 2 * (double)c->macs / c->seconds * 1e-9);
    else
        oct_table_cell(t, "%s", "");
    if (c->scattered || isnan(c->roof))
        oct_table_cell(t, "%s", "");
    else
        oct_table_cell(t, "%.0f %%", 100 * c->roof);
}

static void speed_cell(oct_table *t, const oct_eval_cost *was, const oct_eval_cost *is)
{
    const double faster = oct_eval_cost_faster(was, is);
    if (isnan(faster))
        oct_table_cell(t, "%s", "");
    else
        oct_table_cell(t, "%.2f", faster);
}

static oct_status print_costs(const oct_eval_model_result *m, bool all, FILE *f, oct_err *err)
{
    char bytes[32];
    size_t n = all || m->n_costs < PROFILE_ROWS ? m->n_costs : PROFILE_ROWS;
    oct_table *t =
        oct_table_of("lllrrrrrrrrr", (const char *[]){ "layer", "op", "scheme", "float", "GOP/s", "roof", "quant",
                                                       "GOP/s", "roof", "faster", "weights", "results" });
    for (size_t i = 0; i < n; i++) {
        const oct_eval_cost_row *c = &m->costs[i];
        oct_table_row(t);
        oct_table_cell(t, "%s", c->name);
        oct_table_cell(t, "%s", c->op);
        oct_table_cell(t, "%s", c->is.scheme ? c->is.scheme : "");
        cost_cells(t, &c->was);
        cost_cells(t, &c->is);
        speed_cell(t, &c->was, &c->is);
        oct_table_cell(t, "%s", oct_fmt_bytes(bytes, c->is.weights));
        oct_table_cell(t, "%s", oct_fmt_bytes(bytes, c->is.made));
    }
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (n < m->n_costs)
        oct_print(f, "%zu layers more: --layers lists all, --json has their numbers\n", m->n_costs - n);
    return s;
}

/* Explains the columns, and gives the peaks to which shares refer. */
static void print_roof(const oct_eval_result *r, FILE *f)
{
    oct_print(
        f,
        "faster: float's time by quant's; weights and results: bytes of quant; ~: quartiles more than %.0f %% apart, nothing is concluded\n",
        100 * OCT_SCATTERED_SPREAD);
    oct_print(
        f,
        "roof: share of the shortest time by %.1f GOP/s float, %.1f GOP/s int8 (products of 512 x 512, measured here) and %.1f GB/s (copying in the cache)\n",
        2e-9 * r->machine.float_macs, 2e-9 * r->machine.int8_macs, 1e-9 * r->machine.bytes);
}

/* The arena and its lower bound. */
static void print_arena(const oct_eval_model_result *m, FILE *f)
{
    char arena[32], live[32];
    oct_print(f, "intermediate tensors: %s; at most %s of them are alive at once\n",
              oct_fmt_bytes(arena, m->arena_bytes), oct_fmt_bytes(live, m->live_bytes));
}

/* A speed as every report judges it (oct_report_speed), in a cell. */
static void put_speed(oct_table *t, const oct_eval_speed *s, bool *any_unknown)
{
    const bool unknown = oct_eval_speed_judge(s) == OCT_SPEED_UNKNOWN;
    *any_unknown |= unknown;
    if (unknown)
        oct_table_cell(t, "%s", "?");
    else
        oct_table_cell(t, "%.2f (%.2f to %.2f)", s->median, s->q1, s->q3);
}

static oct_status print_sweep(const oct_eval_result *r, FILE *f, oct_err *err)
{
    char ms[32], title[24];
    bool any_unknown = false;
    oct_table *t = oct_table_of("rr", (const char *[]){ "threads", "batch" });
    if (!r->n_sweep) {
        oct_table_destroy(t);
        return OCT_OK;
    }
    for (size_t k = 0; k < r->n_models; k++) {
        snprintf(title, sizeof title,
                 r->n_models > 2 && k ? "quant %zu"
                 : k                  ? "quant"
                 : r->n_models > 1    ? "float"
                                      : "model",
                 k);
        oct_table_column(t, title, OCT_RIGHT);
        if (k)
            oct_table_column(t, "speed", OCT_RIGHT);
    }
    for (size_t i = 0; i < r->n_sweep; i++) {
        const oct_eval_latency *of = r->sweep[i].of;
        oct_table_row(t);
        oct_table_cell(t, "%d", r->sweep[i].threads);
        oct_table_cell(t, "%zu", r->sweep[i].batch);
        for (size_t k = 0; k < r->n_models; k++) {
            oct_table_cell(t, "%s%s", is_wide(&of[k]) ? "~" : "", oct_fmt_ms(ms, of[k].median));
            if (k)
                put_speed(t, &r->sweep[i].speed[k], &any_unknown);
        }
    }
    oct_print(f, "\nlatency of a sample by threads and samples at a time\n");
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (r->n_models > 1)
        oct_print(f, "speed: times float's, and for half of the pairs of runs%s\n",
                  any_unknown ? "; ?: the times are few or spread too widely to compare" : "");
    return s;
}

static oct_status print_profiles(const oct_eval_result *r, bool all, FILE *f, oct_err *err)
{
    for (size_t k = 1; k < r->n_models; k++) {
        const oct_eval_model_result *m = &r->models[k];
        if (!m->n_costs)
            continue;
        oct_print(f, "\nlayers of %s beside those of %s\n", tool_base(m->name), tool_base(r->models[0].name));
        OCT_TRY(print_costs(m, all, f, err));
        print_roof(r, f);
    }
    for (size_t k = 0; k < r->n_models; k++)
        if (r->models[k].n_steps) {
            oct_print(f, "\nprofile of %s\n", tool_base(r->models[k].name));
            OCT_TRY(print_steps(&r->models[k], all || r->n_models == 1, f, err));
            print_arena(&r->models[k], f);
        }
    return OCT_OK;
}

oct_status qeval_print(const oct_eval_result *r, const oct_report_context *c, bool all_layers, bool steps, FILE *f,
                       oct_err *err)
{
    char count[32], machine[OCT_ENVIRONMENT_TEXT];
    for (size_t k = 0; k < r->n_models; k++)
        if (r->n_models > 2 && k)
            oct_print(f, "quant %-2zu %s\n", k, r->models[k].name);
        else
            oct_print(f, "%s %s\n", r->n_models == 1 ? "model" : k ? "quant" : "float", r->models[k].name);
    oct_print(f, "%s sample%s", oct_fmt_count(count, r->samples), r->samples == 1 ? "" : "s");
    if (r->bad_samples)
        oct_print(f, ", %s broken and left out", oct_fmt_count(count, r->bad_samples));
    oct_print(f, "; %s\n", c->preprocess && c->preprocess[0] ? c->preprocess : "no preprocessing");
    char shared[OCT_BATCH_TEXT], runner[OCT_RUNNER_TEXT];
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_runner(runner, &r->models[k]))
            oct_print(f, "%s %s\n", tool_base(r->models[k].name), runner);
    for (size_t k = 0; k < r->n_models; k++)
        if (oct_report_batch(shared, r, k))
            oct_print(f, "%s %s\n", tool_base(r->models[k].name), shared);
    fputc('\n', f);
    OCT_TRY(print_summary(r, f, err));
    print_drops(r, f);
    print_method(r, f);
    print_gates(r, c, f);
    for (size_t k = 1; k < r->n_models; k++) {
        const oct_eval_model_result *m = &r->models[k];
        if (needs_outputs(r, m)) {
            oct_print(f, "\n");
            OCT_TRY(print_outputs(r, m, f, err));
        }
        if (!m->n_layers)
            continue;
        oct_print(
            f,
            "\n%s%s%s (%s samples; own: with inputs as in the float model; SQNR: with the error of everything before)\n",
            all_layers ? "layers" : "worst layers", r->n_models > 2 ? " of " : "",
            r->n_models > 2 ? tool_base(m->name) : "", oct_fmt_count(count, r->layer_samples));
        OCT_TRY(print_layers(m, all_layers, f, err));
        print_legend(m, f);
    }
    for (size_t k = r->n_models > 1 ? 1 : 0; k < r->n_models; k++)
        OCT_TRY(qeval_print_classes(r, k, f, err));
    OCT_TRY(print_sweep(r, f, err));
    if (steps)
        OCT_TRY(print_profiles(r, all_layers, f, err));
    if (r->models[0].latency.runs || r->n_sweep || (steps && r->models[0].n_steps))
        oct_print(f, "\n%s\n", oct_report_environment(machine, r, c->version));
    return OCT_OK;
}
