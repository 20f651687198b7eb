/* The verdict: for each quantized model whether it is as accurate, in a sentence or two. */
#include "qeval.h"

#include "base/io.h"

#include "cli/textfmt.h"
#include "common/print_answer.h"

#include <math.h>
#include <string.h>

const oct_item *qeval_counting(const oct_item *report, const oct_item *model)
{
    const oct_item *metrics = oct_item_at(report, "metrics"), *any = NULL;
    for (const oct_item *m = NULL; (m = oct_item_next(metrics, m));) {
        const oct_item *drop = oct_item_member(oct_item_at(model, "drop"), oct_item_text(m, "name"));
        if (!drop || !oct_item_text(drop, "text"))
            continue;
        if (!oct_item_true(m, "relative"))
            return m;
        any = !any && oct_item_true(m, "percent") ? m : any;
    }
    return any;
}

/* "As accurate as float, as far as 400 samples tell: top1 0.00 points (95 %: ...), within noise." */
static void put_accuracy(const oct_item *report, const oct_item *model, oct_buf *b)
{
    const oct_item *m = qeval_counting(report, model);
    const char *name = m ? oct_item_text(m, "name") : "";
    const oct_item *drop = m ? oct_item_member(oct_item_at(model, "drop"), name) : NULL;
    const double db = oct_item_number(model, "output_sqnr_db");
    char text[32];
    if (m && !oct_item_true(m, "relative")) {
        const bool noise = oct_item_true(drop, "within_noise") || isnan(oct_item_number(drop, "low")),
                   worse = oct_item_number(drop, "value") > 0,
                   same = oct_item_number(drop, "value") == 0 && oct_item_number(drop, "low") == 0 &&
                          oct_item_number(drop, "high") == 0;
        /* the verdict itself has said what the last word says */
        const char *said = oct_item_text(drop, "text"), *last = strrchr(said, ',');
        const bool twice = last && (strcmp(last, ", worse") == 0 || strcmp(last, ", better") == 0);
        oct_buf_printf(b, "%s: %s %.*s.",
                       same    ? "as good as float"
                       : noise ? "no difference is proved"
                       : worse ? "worse than float"
                               : "better than float",
                       name, (int)(twice ? (size_t)(last - said) : strlen(said)), said);
    } else if (m) {
        oct_buf_printf(b, "%s %s with float; only labels can tell whether it is as accurate.", name,
                       oct_fmt_percent(text,
                                       oct_item_number(oct_item_member(oct_item_at(model, "metrics"), name), "")));
    } else if (isfinite(db)) {
        const int64_t n = oct_item_whole(report, "samples");
        oct_buf_printf(b, "output SQNR %s", oct_fmt_db(text, db));
        oct_buf_printf(b, " on %s sample%s: the error is %.2g %% of the signal.", oct_fmt_count(text, n),
                       n == 1 ? "" : "s", 100 * pow(10, -db / 20));
    } else {
        oct_buf_puts(b, "compared with float.");
    }
}

static void put_gates(const oct_item *report, int64_t number, oct_buf *b)
{
    const oct_item *gates = oct_item_at(report, "gates");
    size_t n = 0, missed = 0, unsure = 0;
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));)
        if (oct_item_whole(g, "model_number") == number) {
            n++;
            missed += !oct_item_true(g, "met");
            unsure += oct_item_true(g, "unsure");
        }
    if (missed)
        oct_buf_printf(b, "%zu of %zu gates missed; ", missed, n);
    else if (unsure)
        oct_buf_printf(b, "all gates met, %zu of them not for certain; ", unsure);
    else if (n)
        oct_buf_puts(b, "all gates met; ");
}

void qeval_print_verdict(const oct_item *report, FILE *f)
{
    const oct_item *models = oct_item_at(report, "models");
    int64_t k = 0;
    for (const oct_item *m = NULL; (m = oct_item_next(models, m)); k++) {
        oct_buf b = OCT_BUF_INIT;
        if (k == 0)
            continue;
        oct_buf_printf(&b, "%s: ", oct_path_base(oct_item_text(m, "path")));
        put_gates(report, k, &b);
        put_accuracy(report, m, &b);
        tool_print_item(NULL, oct_buf_str(&b), f);
        oct_buf_free(&b);
    }
    if (k > 1)
        oct_print(f, "\n");
}
