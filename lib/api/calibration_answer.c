/* What a reader wants to know first of a calibration: what was written, from which samples, where 8 bits cut values
 * off, and the command that uses it. */
#include "api/answer.h"
#include "api/calibration.h"

#include "base/io.h"
#include "base/number_text.h"
#include "observers/calib.h"
#include "observers/observer.h"

#include <stdio.h>

enum { MOST_CUT = 3 };

static void put_file(oct_json *j, const octet_calibrate_options *x, const oct_calib *c, double seconds)
{
    oct_buf b = OCT_BUF_INIT;
    char took[32];
    oct_buf_printf(&b, "%s has the ranges of %zu tensors of %s, from %llu sample%s in %s.", x->output, c->n_tensors,
                   oct_path_base(x->model), (unsigned long long)c->samples, c->samples == 1 ? "" : "s",
                   oct_fmt_seconds(took, seconds));
    oct_answer_item(j, "file", &b, NULL);
    oct_buf_free(&b);
}

static void put_samples(oct_json *j, const octet_calibrate_options *x, const oct_calib *c)
{
    oct_buf b = OCT_BUF_INIT;
    if (x->shards > 1)
        oct_buf_printf(&b, "Part %lld of %lld of ", (long long)x->shard, (long long)x->shards);
    oct_buf_printf(&b, "%s, %s%s.", c->n_shards ? c->shards[0].set : "", *c->preprocess ? "prepared with " : "",
                   *c->preprocess ? c->preprocess : "their values as they are");
    oct_answer_item(j, "samples", &b, NULL);
    oct_buf_free(&b);
}

/* ---- what saturates ---- */

typedef struct cut {
    const oct_calib_tensor *t;
    oct_selection s;
} cut;

/* The tensors of which the largest shares of the values are cut off, the largest first. */
static void find_cut(const oct_calib *c, cut worst[MOST_CUT])
{
    for (size_t i = 0; i < c->n_tensors; i++) {
        cut now = { .t = c->tensors[i] };
        oct_err ignored = OCT_ERR_INIT;
        if (now.t->off || now.t->pinned || oct_stats_finite(&now.t->stats) == 0 ||
            oct_observe(&now.t->stats, oct_observer_default(), (oct_qrange){ 0, 255, false }, &now.s, &ignored) !=
                OCT_OK ||
            !(now.s.clipped > 0))
            continue;
        for (int k = 0; k < MOST_CUT && now.t; k++)
            if (!worst[k].t || now.s.clipped > worst[k].s.clipped) {
                const cut other = worst[k];
                worst[k] = now;
                now = other;
            }
    }
}

static void put_saturation(oct_json *j, const oct_calib *c)
{
    cut worst[MOST_CUT] = { { NULL } };
    oct_buf b = OCT_BUF_INIT;
    find_cut(c, worst);
    oct_buf_printf(&b, "In 8 bits, as %s chooses ranges: %s", oct_observer_default().observer->name,
                   worst[0].t ? "" : "nothing");
    for (int k = 0; k < MOST_CUT && worst[k].t; k++)
        oct_buf_printf(&b, "%s%.2g %% of %s (range %.3g to %.3g, values %.3g to %.3g)", k ? ", " : "",
                       100 * worst[k].s.clipped, worst[k].t->name, (double)worst[k].s.range.lo,
                       (double)worst[k].s.range.hi, (double)worst[k].t->stats.min, (double)worst[k].t->stats.max);
    oct_buf_puts(&b, ".");
    oct_answer_item(j, "saturates", &b, NULL);
    oct_buf_free(&b);
}

/* ---- what to do ---- */

static void put_next(oct_json *j, const octet_calibrate_options *x)
{
    oct_buf text = OCT_BUF_INIT, command = OCT_BUF_INIT;
    if (x->model_data || oct_path_is_stream(x->output))
        return;
    if (x->shards > 1) {
        oct_buf_printf(&text, "When there are all %lld parts:", (long long)x->shards);
        oct_buf_puts(&command, "qcalib merge PARTS -o WHOLE.calib");
    } else {
        oct_buf_puts(&text, "To convert with these ranges:");
        oct_buf_puts(&command, "qconvert ");
        oct_quote(&command, x->model);
        oct_buf_puts(&command, " --calib ");
        oct_quote(&command, x->output);
    }
    oct_answer_item(j, "next", &text, &command);
    oct_buf_free(&text);
    oct_buf_free(&command);
}

void oct_calibration_answer(const octet_calibrate_options *x, const oct_calib *c, double seconds, oct_document *to)
{
    oct_json j = { .to = to };
    oct_json_open(&j, NULL, '{');
    oct_json_open(&j, "answer", '[');
    put_file(&j, x, c, seconds);
    put_samples(&j, x, c);
    put_saturation(&j, c);
    put_next(&j, x);
    oct_json_close(&j);
    oct_json_close(&j);
}
