/* Parses gates: one by name and value, or a text with one in each line. */
#include "base/number_text.h"
#include "base/words.h"
#include "eval/gates/gates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[OCT_GATE_KINDS] = {
    [OCT_GATE_DROP] = "max-drop",       [OCT_GATE_AGREEMENT] = "min-agreement", [OCT_GATE_SQNR] = "min-sqnr",
    [OCT_GATE_SPEEDUP] = "min-speedup", [OCT_GATE_LATENCY] = "max-latency",     [OCT_GATE_SIZE] = "max-size",
    [OCT_GATE_MEMORY] = "max-memory"
};

const char *oct_gate_name(size_t kind)
{
    return kind < OCT_GATE_KINDS ? names[kind] : kind == OCT_GATE_BASELINE ? "baseline" : NULL;
}

void oct_gates_free(oct_gates *g)
{
    oct_arena_destroy(g->arena);
    *g = (oct_gates){ 0 };
}

static oct_status reserve(oct_gates *g, oct_err *err)
{
    if (!g->arena && !(g->arena = oct_arena_create()))
        return oct_nomem(err);
    if (g->n < g->room)
        return OCT_OK;
    const size_t room = g->room ? 2 * g->room : 8;
    oct_gate *v = oct_arena_calloc(g->arena, room, sizeof *v);
    if (!v)
        return oct_nomem(err);
    if (g->n)
        memcpy(v, g->v, g->n * sizeof *v);
    g->v = v;
    g->room = room;
    return OCT_OK;
}

/* ---- values ---- */

/* A finite decimal number, which the unit may follow. */
static bool read_number(const char *text, const char *unit, double *v)
{
    char *end;
    *v = strtod(text, &end);
    return end != text && !strpbrk(text, "xX \t\r\n") && isfinite(*v) && (!*end || strcmp(end, unit) == 0);
}

static oct_status read_quantity(oct_gate *g, const char *unit, bool above_zero, const char *hint, oct_err *err)
{
    if (read_number(g->text, unit, &g->value) && (!above_zero || g->value > 0))
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--%s: '%.100s' is not a %s", names[g->kind], g->text,
             above_zero ? "number above 0" : "number");
    oct_hint(err, "%s", hint);
    return OCT_EUSAGE;
}

static oct_status read_bytes(oct_gate *g, oct_err *err)
{
    uint64_t bytes;
    if (!oct_size_text(g->text, &bytes, &g->share)) {
        oct_fail(err, OCT_EUSAGE, "--%s: '%.100s' is not a size", names[g->kind], g->text);
        oct_hint(err, "give a share of the float model's, as 25%%, or bytes, as 12MB or 800kB");
        return OCT_EUSAGE;
    }
    g->value = (double)bytes;
    return OCT_OK;
}

/* "0.5%", or "top1=0.5%". */
static oct_status read_drop(oct_gates *gates, oct_gate *g, oct_err *err)
{
    const char *sign = strchr(g->text, '=');
    if (sign) {
        char *name = oct_arena_strndup(gates->arena, g->text, (size_t)(sign - g->text));
        if (!name)
            return oct_nomem(err);
        g->command = strcmp(name, OCT_COMMAND_METRIC) == 0;
        if (!g->command)
            OCT_TRY_WITHIN(oct_metric_find(name, &g->metric, err), err, "--%s", names[g->kind]);
    }
    OCT_TRY_WITHIN(oct_drop_limit_parse(sign ? sign + 1 : g->text, &g->limit, err), err, "--%s", names[g->kind]);
    return g->metric ? oct_drop_limit_check(&g->limit, g->metric, err) : OCT_OK;
}

static oct_status read_value(oct_gates *gates, oct_gate *g, oct_err *err)
{
    switch (g->kind) {
    case OCT_GATE_DROP: return read_drop(gates, g, err);
    case OCT_GATE_AGREEMENT:
        OCT_TRY(oct_metric_find("agreement", &g->metric, err));
        {
            OCT_TRY(oct_share_parse("--min-agreement", "samples", g->text, &g->limit.value, err));
            g->limit.value = 1 - g->limit.value;
            return OCT_OK;
        }
    case OCT_GATE_SQNR:
        OCT_TRY(oct_metric_find("sqnr", &g->metric, err));
        return read_quantity(g, "dB", false, "give decibels, as 30", err);
    case OCT_GATE_SPEEDUP: return read_quantity(g, "", true, "1.2 is 1.2 times as fast as the float model", err);
    case OCT_GATE_LATENCY: return read_quantity(g, "ms", true, "give milliseconds for one sample, as 4.5", err);
    default: return read_bytes(g, err);
    }
}

oct_status oct_gates_add(oct_gates *g, const char *name, const char *value, oct_err *err)
{
    oct_gate one = { .kind = 0 };
    while (one.kind < OCT_GATE_KINDS && strcmp(names[one.kind], name) != 0)
        one.kind++;
    if (one.kind == OCT_GATE_KINDS)
        return oct_fail(err, OCT_EUSAGE, "there is no gate '%.100s'", name);
    OCT_TRY(reserve(g, err));
    if (!(one.text = oct_arena_strdup(g->arena, value)))
        return oct_nomem(err);
    OCT_TRY(read_value(g, &one, err));
    for (size_t i = 0; i < g->n; i++) {
        const oct_gate *v = &g->v[i];
        if (v->kind == one.kind && v->metric == one.metric && v->command == one.command)
            return oct_fail(err, OCT_EUSAGE, "--%s is given twice: %s and %s", name, v->text, value);
    }
    g->v[g->n++] = one;
    return OCT_OK;
}

/* ---- a text ---- */

static oct_status read_line(oct_gates *g, oct_words *w, oct_err *err)
{
    const char *value, *more, *at;
    oct_err what = OCT_ERR_INIT;
    size_t kind;
    OCT_TRY(OCT_WORDS_ONE_OF(w, "gate", names, &kind, err));
    OCT_TRY(oct_words_next(w, &value, &at, err));
    if (!*value)
        return oct_words_fault(w, at, err, "the value of %s is missing", names[kind]);
    if (!oct_words_done(w) && kind == OCT_GATE_DROP && !strchr(value, '=')) {
        const oct_metric *m;
        if (strcmp(value, OCT_COMMAND_METRIC) != 0 && oct_metric_find(value, &m, &what) != OCT_OK)
            return oct_words_misplaced(w, at, &what, err);
        OCT_TRY(oct_words_next(w, &more, &at, err));
        if (!(value = oct_arena_printf(g->arena, "%s=%s", value, more)))
            return oct_nomem(err);
    }
    OCT_TRY(oct_words_end(w, err));
    return oct_gates_add(g, names[kind], value, &what) == OCT_OK ? OCT_OK : oct_words_misplaced(w, at, &what, err);
}

oct_status oct_gates_read(oct_gates *g, const char *text, const char *label, oct_err *err)
{
    OCT_TRY(reserve(g, err));
    oct_words w = { .label = label, .next = text, .arena = g->arena };
    while (oct_words_line(&w))
        if (!oct_words_done(&w))
            OCT_TRY(read_line(g, &w, err));
    return OCT_OK;
}
