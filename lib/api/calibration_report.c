/* The report of a calibration table, of schema "octet-calibration-1". */
#include "api/answer.h"
#include "api/calibration.h"

#include "observers/calib.h"
#include "observers/exercise.h"

#include <math.h>
#include <stdio.h>

void oct_calibration_warn_few(oct_voice v, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT, few = OCT_BUF_INIT;
    oct_exercise_few(c, &few);
    if (few.len && !oct_calib_missing(c, &missing))
        oct_say(v, OCT_NOTE_WARNING, "%s", oct_buf_str(&few));
    oct_buf_free(&few);
    oct_buf_free(&missing);
}

/* Counts values between lo and hi in equal steps. A bin is counted at its middle, and the outermost ones where their
 * values are. */
static void histogram(const oct_stats *s, double lo, double hi, uint64_t count[OCT_CALIBRATION_BINS])
{
    oct_bin b;
    for (size_t at = 0; oct_stats_next(s, &at, &b);) {
        const double x = ((b.lo + b.hi) / 2 - lo) / (hi - lo) * OCT_CALIBRATION_BINS;
        if (b.lo <= hi && b.hi >= lo)
            count[x >= OCT_CALIBRATION_BINS ? OCT_CALIBRATION_BINS - 1 : x > 0 ? (int)x : 0] += b.count;
    }
}

/* The interval that is drawn, without values that are used as masks. */
static void drawn_range(const oct_stats *s, double *lo, double *hi)
{
    double bound = oct_stats_masks(s, NULL);
    oct_bin b;
    *lo = *hi = 0;
    for (size_t at = 0; oct_stats_next(s, &at, &b);)
        if (b.lo > -bound && b.hi <= bound) {
            *lo = fmin(*lo, b.lo);
            *hi = fmax(*hi, b.hi);
        }
    *lo = fmax(*lo, fmin((double)s->min, 0));
    *hi = fmin(*hi, fmax((double)s->max, 0));
}

static void put_tensor(oct_json *j, const void *row)
{
    const oct_calib_tensor *x = *(oct_calib_tensor *const *)row;
    uint64_t count[OCT_CALIBRATION_BINS] = { 0 };
    double lo, hi;
    oct_json_str(j, "name", x->name);
    oct_json_bool(j, "off", x->off);
    oct_json_int(j, "values", (int64_t)x->stats.n);
    oct_json_int(j, "zeros", (int64_t)x->stats.zeros);
    oct_json_int(j, "infinite", (int64_t)(x->stats.inf[0] + x->stats.inf[1]));
    oct_json_num(j, "min", (double)x->stats.min);
    oct_json_num(j, "max", (double)x->stats.max);
    if (x->pinned) {
        oct_json_open(j, "pin", '[');
        oct_json_num(j, NULL, (double)x->pin.lo);
        oct_json_num(j, NULL, (double)x->pin.hi);
        oct_json_close(j);
    }
    if (x->pinned && x->exact.bits) {
        oct_json_open(j, "exact", '{');
        oct_json_int(j, "bits", x->exact.bits);
        oct_json_num(j, "scale", (double)x->exact.scale);
        oct_json_int(j, "zero_point", x->exact.zero);
        oct_json_close(j);
    }
    drawn_range(&x->stats, &lo, &hi);
    if (oct_stats_finite(&x->stats) && hi > lo) {
        histogram(&x->stats, lo, hi, count);
        oct_json_open(j, "histogram", '{');
        oct_json_num(j, "low", lo);
        oct_json_num(j, "high", hi);
        oct_json_open(j, "counts", '[');
        for (int i = 0; i < OCT_CALIBRATION_BINS; i++)
            oct_json_int(j, NULL, (int64_t)count[i]);
        oct_json_close(j);
        oct_json_close(j);
    }
}

static void put_shard(oct_json *j, const void *row)
{
    const oct_calib_shard *s = row;
    oct_json_str(j, "set", s->set);
    oct_json_int(j, "index", s->index);
    oct_json_int(j, "count", s->count);
}

static void json_shards(oct_json *j, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT;
    oct_json_rows(j, "shards", c->shards, c->n_shards, sizeof *c->shards, put_shard);
    oct_json_str(j, "missing", oct_calib_missing(c, &missing) ? oct_buf_str(&missing) : NULL);
    oct_buf_free(&missing);
}

static void put_answer(const void *answer, oct_json *j)
{
    oct_json_item(j, "answer", answer);
}

void oct_calibration_report(const oct_calib *c, const oct_item *answer, oct_document *to)
{
    char hash[20];
    oct_json j = { .to = to };
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)c->model_hash);
    oct_report_open(&j, "octet-calibration-1");
    if (answer) {
        oct_json_item(&j, "answer", answer);
        oct_answer_next(&j, put_answer, answer);
    }
    oct_json_str(&j, "model", c->model);
    oct_json_str(&j, "model_hash", hash);
    oct_json_str(&j, "preprocess", c->preprocess);
    oct_json_int(&j, "samples", (int64_t)c->samples);
    json_shards(&j, c);
    oct_json_rows(&j, "tensors", c->tensors, c->n_tensors, sizeof *c->tensors, put_tensor);
    oct_json_close(&j);
}
