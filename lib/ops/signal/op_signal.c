/* lib/ops/signal/op_signal.c -- tables for signals: HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix. */
#include "kernels/math.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

#define TWO_PI 0x1.921fb54442d18p+2
#define LN_10 0x1.26bb1bbb55516p+1

static oct_status table_type(const oct_infer *c, oct_err *err)
{
    const int64_t t = oct_node_int(oct_in_node(c), "output_datatype", OCT_F32);
    if (t <= 0 || t >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'output_datatype' is %lld", (long long)t);
    oct_out_dtype(c, 0, (oct_dtype)t);
    return OCT_OK;
}

static oct_status table_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_dom_of(s->out[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->out[0]->dtype));
    return OCT_OK;
}

/* ------------------------------------------------------------------ windows */

static oct_status window_infer(const oct_infer *c, oct_err *err)
{
    int64_t n;
    oct_dim d = { -1, NULL };
    OCT_TRY(table_type(c, err));
    if (oct_in_consts(c, 0, &n, 1) == 1)
        d.n = n;
    if (d.n < -1 || (d.n == -1 && oct_in_consts(c, 0, &n, 1) == 1))
        return oct_fail(err, OCT_EMALFORMED, "a window of %lld values", (long long)n);
    return oct_out_shape(c, 0, 1, &d, err);
}

static oct_status window_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *y = s->out[0];
    const char kind = s->op->type[2]; /* haNn, haMming, blAckman */
    const double a = kind == 'n'   ? 0.5
                     : kind == 'm' ? 25.0 / 46.0
                                   : 0.42,
                 b = kind == 'n'   ? 0.5
                     : kind == 'm' ? 21.0 / 46.0
                                   : 0.5;
    const double c = kind == 'a' ? 0.08 : 0.0,
                 span = (double)(y->count - (oct_node_int(s->node, "periodic", 1) != 0 ? 0 : 1));
    for (int64_t i = 0; i < y->count; i++) {
        const double at = span > 0.0 ? TWO_PI * ((double)i / span) : TWO_PI / 2.0;
        const double v = a - b * oct_cos(at) + c * oct_cos(2.0 * at);
        oct_elem_store(y->dtype, y->data, i, 1, 1, OCT_DOM_D, &v);
    }
    return OCT_OK;
}

#define WINDOW(name, onnx)                    \
    const oct_op oct_op_##name = {            \
        OCT_SCHEMA(onnx, "", 17, 1, 1, 1, 1), \
        .infer = window_infer,                \
        .prepare = table_prepare,             \
        .run = window_run,                    \
    }

WINDOW(hann_window, "HannWindow");
WINDOW(hamming_window, "HammingWindow");
WINDOW(blackman_window, "BlackmanWindow");

/* ------------------------------------------------------------------ MelWeightMatrix */

enum { BANDS, LENGTH, RATE, LOW, HIGH };

static oct_status mel_infer(const oct_infer *c, oct_err *err)
{
    int64_t bands, length;
    oct_dim d[2] = { { -1, NULL }, { -1, NULL } };
    OCT_TRY(table_type(c, err));
    if (oct_in_consts(c, BANDS, &bands, 1) == 1)
        d[1] = oct_dim_of(bands);
    if (oct_in_consts(c, LENGTH, &length, 1) == 1)
        d[0] = oct_dim_of(length < 0 ? -1 : length / 2 + 1);
    if ((d[0].n < 0 && oct_in_consts(c, LENGTH, &length, 1) == 1) ||
        (d[1].n < 0 && oct_in_consts(c, BANDS, &bands, 1) == 1))
        return oct_fail(err, OCT_EMALFORMED, "a negative number of bands or length");
    return oct_out_shape(c, 0, 2, d, err);
}

static double mel_of(double hertz)
{
    return 2595.0 * (oct_log1p(hertz / 700.0) / LN_10);
}

static double hertz_of(double mel)
{
    return 700.0 * oct_expm1(mel / 2595.0 * LN_10);
}

/* Spectrogram bin at the lower edge of band i. */
static double edge_of(int64_t i, double low, double step, double length, double rate)
{
    return floor((length + 1.0) * hertz_of((double)i * step + low) / rate);
}

static oct_status mel_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *y = s->out[0];
    const int64_t rows = y->dims[0], bands = y->dims[1];
    double in[5];
    for (int i = 0; i < 5; i++)
        if (!oct_step_scalar(s, NULL, i, 0.0, &in[i]))
            return oct_fail(err, OCT_EINTERNAL, "input %d is not there", i);
    const double low = mel_of(in[LOW]), step = (mel_of(in[HIGH]) - low) / (double)(bands + 2);
    memset(y->data, 0, (size_t)y->count * oct_elem_size(y->dtype));
    for (int64_t i = 0; i < bands; i++) {
        double e[3];
        for (int k = 0; k < 3; k++) {
            e[k] = edge_of(i + k, low, step, in[LENGTH], in[RATE]);
            if (!(e[k] >= 0.0 && e[k] <= (double)(rows - (k < 2))))
                return oct_fail(err, OCT_EMALFORMED, "band %lld reaches bin %g of %lld", (long long)i, e[k],
                                (long long)rows);
        }
        for (int64_t j = (int64_t)e[0]; j < rows && (double)j <= e[2]; j++) {
            const double at = (double)j;
            double v = at < e[1] ? (at - e[0]) / (e[1] - e[0]) : at > e[1] ? (e[2] - at) / (e[2] - e[1]) : 1.0;
            oct_elem_store(y->dtype, y->data, j * bands + i, 1, 1, OCT_DOM_D, &v);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_mel_weight_matrix = {
    OCT_SCHEMA("MelWeightMatrix", "", 17, 5, 5, 1, 1),
    .infer = mel_infer,
    .prepare = table_prepare,
    .run = mel_run,
};
