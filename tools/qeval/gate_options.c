/* Gates: read from options and from a file before the work, and judged after it. */
#include "qeval.h"

#include "base/io.h"

enum { MOST_TEXT = 1 << 20, MOST_REPORT = 1 << 26 };

static oct_status read_file(const char *path, oct_gates *g, oct_err *err)
{
    char *text;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of gates", &text, err));
    const size_t before = g->n;
    oct_status s = oct_gates_read(g, text, path, err);
    if (s == OCT_OK && g->n == before) { /* of a file that was emptied, nothing would ever fail again */
        s = oct_fail(err, OCT_EMALFORMED, "%s: there is no gate in it", path);
        oct_hint(err, "a line is a gate's name and its value, as 'max-drop top1 1%%'");
    }
    oct_free(text);
    return s;
}

static oct_status read_all(const qeval_args *a, oct_gates *g, oct_err *err)
{
    for (size_t i = 0; i < a->max_drop.n; i++)
        OCT_TRY(oct_gates_add(g, oct_gate_name(OCT_GATE_DROP), a->max_drop.v[i], err));
    for (size_t k = 0; k < OCT_GATE_KINDS; k++)
        if (a->gate[k])
            OCT_TRY(oct_gates_add(g, oct_gate_name(k), a->gate[k], err));
    return a->gates ? read_file(a->gates, g, err) : OCT_OK;
}

static oct_status reject(const char *gate, const char *why, const char *remedy, oct_err *err)
{
    oct_fail(err, OCT_EUSAGE, "--%s %s", gate, why);
    oct_hint(err, "%s", remedy);
    return OCT_EUSAGE;
}

/* Checks what can be known before the work. */
static oct_status check(const qeval_args *a, const oct_cli *cli, const oct_gates *g, oct_err *err)
{
    if (!g->n)
        return OCT_OK;
    const char *first = oct_gate_name(g->v[0].kind), *timed = oct_gates_timed(g);
    if (a->check || a->outputs || a->sensitivity || a->sensitivity_file)
        return reject(first, "judges a comparison, and none is asked for",
                      "leave out --check, --outputs or --sensitivity", err);
    if (!a->others.n && !a->compute)
        return reject(first, "judges quantized models, and none is given: no metric here has a drop",
                      "name one behind the float model", err);
    if (timed && oct_cli_given(cli, "latency") && !a->latency)
        return reject(timed, "needs times, and --no-latency leaves them out", "leave out one of both", err);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == OCT_GATE_MEMORY && a->runner)
            return reject(oct_gate_name(OCT_GATE_MEMORY),
                          "judges the memory of our runtime, and --runner leaves the models to another",
                          "leave out one of both", err);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].command && !a->command.command)
            return reject(oct_gate_name(g->v[i].kind), "asks for the metric of a command, and there is none",
                          "give it with --metric-cmd", err);
    return OCT_OK;
}

oct_status qeval_read_gates(const qeval_args *a, const oct_cli *cli, oct_gates *g, oct_err *err)
{
    OCT_TRY(read_all(a, g, err));
    return check(a, cli, g, err);
}

oct_status qeval_read_baseline(const qeval_args *a, oct_arena *arena, oct_baseline **b, oct_err *err)
{
    char *text;
    size_t size;
    if (!a->baseline)
        return OCT_OK;
    if (!a->others.n && !a->compute)
        return reject("baseline", "is about quantized models, and none is given", "name one behind the float model",
                      err);
    OCT_TRY(oct_read_all(a->baseline, MOST_REPORT, &text, &size, err));
    const oct_status s = oct_baseline_read(text, size, a->baseline, arena, b, err);
    oct_free(text);
    if (s == OCT_EUNSUPPORTED)
        oct_within(err, "--baseline");
    return s;
}

oct_status qeval_judge_gates(oct_cli *cli, const oct_eval_result *r, const oct_report_context *c, oct_err *err)
{
    char text[OCT_GATE_TEXT];
    const oct_gate_result *last = NULL;
    for (size_t i = 0; i < c->n_gates; i++) {
        if (c->gates[i].met)
            continue;
        if (last)
            oct_cli_fault(cli, "%s: %s", r->models[last->model].name, oct_report_gate_result(text, last));
        last = &c->gates[i];
    }
    return last ? oct_fail(err, OCT_EGOAL, "%s: %s", r->models[last->model].name, oct_report_gate_result(text, last))
                : OCT_OK;
}
