/* Fuzz target: any bytes as the report of an earlier run, which a result made by hand is held against. */
#include "base/mem.h"
#include "eval/gates/baseline.h"
#include "eval/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const oct_baseline *b)
{
    oct_err err = OCT_ERR_INIT;
    oct_eval_score s[2][2];
    oct_eval_model_result m[2];
    oct_eval_result r = { .arena = oct_arena_create(), .models = m, .n_models = 2, .n_scores = 2 };
    const oct_gate_result *found = NULL;
    char words[OCT_GATE_TEXT], title[OCT_GATE_TITLE];
    size_t n = 0;
    if (!r.arena)
        return;
    for (size_t k = 0; k < 2; k++) {
        m[k] = (oct_eval_model_result){
            .name = "q.onnx", .scores = s[k], .size_bytes = 1000, .peak_bytes = 1 << 20, .sqnr_db = 30
        };
        for (size_t i = 0; i < 2; i++)
            s[k][i] = (oct_eval_score){ oct_metric_at(i), 0.9,    0.91,  0.01, i ? NAN : -0.02,
                                        i ? NAN : 0.04,   "made", false, 400 };
    }
    const oct_status st = oct_baseline_judge(b, &r, &found, &n, &err);
    if ((st != OCT_OK && st != OCT_EUSAGE && st != OCT_ENOMEM) || (st == OCT_OK && (n < 2 || n > 5)))
        abort();
    for (size_t i = 0; st == OCT_OK && i < n; i++)
        if (strlen(oct_report_gate_result(words, &found[i])) >= OCT_GATE_TEXT ||
            !*oct_report_gate_title(title, &found[i]))
            abort();
    oct_arena_destroy(r.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_baseline *b = NULL;
    oct_arena *a = oct_arena_create();
    if (!a)
        return 0;
    const oct_status s = oct_baseline_read((const char *)data, size, "fuzz", a, &b, &err);
    if (s == OCT_OK)
        judge(b);
    else if (s != OCT_EMALFORMED && s != OCT_ENOMEM && s != OCT_EUNSUPPORTED)
        abort();
    oct_arena_destroy(a);
    return 0;
}
