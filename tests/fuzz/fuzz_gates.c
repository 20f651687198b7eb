/* Fuzz target: any text as a file of gates, which are then judged on results made by hand. */
#include "base/mem.h"
#include "eval/gates/gates.h"
#include "eval/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Scores of both models for every metric, and times. */
static void fill(oct_eval_result *r, oct_eval_model_result m[2], oct_eval_score s[2][METRICS])
{
    for (size_t k = 0; k < 2; k++) {
        m[k] = (oct_eval_model_result){ .name = "m",
                                        .scores = s[k],
                                        .size_bytes = 1000,
                                        .peak_bytes = 1 << 20,
                                        .speed = { 1.5, 1.4, 1.6, 40 },
                                        .latency = { 4e-3, 3e-3, 5e-3, 40 } };
        for (size_t i = 0; i < METRICS && oct_metric_at(i); i++) {
            s[k][i] = (oct_eval_score){ oct_metric_at(i), 0.9, 0.91, 0.01, -0.02, 0.04, "made", false, 400 };
            r->n_scores = i + 1;
        }
    }
}

static void judge(const oct_gates *g)
{
    oct_err err = OCT_ERR_INIT;
    oct_eval_model_result m[2];
    oct_eval_score s[2][METRICS];
    oct_eval_result r = { .arena = oct_arena_create(), .models = m, .n_models = 2 };
    const oct_gate_result *found;
    char words[OCT_GATE_TEXT], title[OCT_GATE_TITLE];
    size_t n;
    if (!r.arena)
        return;
    fill(&r, m, s);
    const oct_status st = oct_gates_judge(g, &r, &found, &n, &err);
    if (st == OCT_OK && n != g->n)
        abort();
    if (st != OCT_OK && st != OCT_EUSAGE && st != OCT_ENOMEM)
        abort();
    for (size_t i = 0; st == OCT_OK && i < n; i++)
        if (strlen(oct_report_gate_result(words, &found[i])) >= OCT_GATE_TEXT ||
            !*oct_report_gate_title(title, &found[i]) || isnan(found[i].limit))
            abort();
    oct_arena_destroy(r.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_gates g = { 0 };
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const oct_status s = oct_gates_read(&g, text, "fuzz", &err);
    if (s == OCT_OK)
        judge(&g);
    else if ((s != OCT_EMALFORMED && s != OCT_ENOMEM) || (s == OCT_EMALFORMED && strncmp(err.text, "fuzz:", 5) != 0))
        abort();
    oct_gates_free(&g);
    free(text);
    return 0;
}
