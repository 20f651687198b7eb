/* lib/encodings/enc_ncnn.c -- table of ncnn2table: `LAYER_param_0 S S ...` has what weights are multiplied by, a number
 * for each output channel (for each group, where there are several), then `LAYER S` what the layer's input is. A scale
 * as others have it is 1 / S. A line that begins with `#` leaves its layer in float. */
#include "encodings/encodings_int.h"

#include "base/mem.h"
#include "ops/traits.h"

#include <math.h>
#include <string.h>

#define WEIGHTS "_param_"
#define LEAST 1e-38 /* of what values are multiplied by */
#define MOST 1e38
enum { MOST_NAME = 255 }; /* what ncnn reads of it */

static bool is_of_weights(oct_word name)
{
    return oct_encoding_holds(name.at, name.n, WEIGHTS);
}

/* The form has lines of weights, in front; ONNX Runtime's lines look like the others. */
static bool claims(const char *text, size_t size)
{
    oct_words w = { .next = text, .limit = text + size };
    return oct_encoding_next(&w) && is_of_weights(oct_words_take(&w)) && w.at < w.end;
}

static oct_status read_layer(oct_encodings *e, oct_words *w, oct_err *err)
{
    oct_calib_tensor *t;
    double v, wide = 0, least = INFINITY;
    oct_words numbers = *w;
    const oct_word name = oct_words_take(&numbers);
    do {
        OCT_TRY(oct_words_number(&numbers, LEAST, MOST, &v, err));
        least = fmin(least, v);
        wide = fmax(wide, v);
    } while (numbers.at < numbers.end);
    OCT_TRY(oct_encoding_add(e, w, name.at + name.n, &t, err));
    if (!oct_encodings_pin_exact(t, 8, 1 / least, 128))
        return oct_words_fault(w, name.at + name.n, err, "the number gives no scale");
    t->pin.lo = 0 - t->pin.hi; /* -128 is not used */
    if (wide != least)         /* by channel: a range that holds all */
        t->exact.bits = 0;
    return OCT_OK;
}

static oct_status read(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err)
{
    oct_words w = { .label = label, .next = text, .limit = text + size };
    while (oct_encoding_next(&w)) {
        oct_words_skip(&w);
        oct_words line = w;
        if (*w.at == '#')
            continue;
        if (is_of_weights(oct_words_take(&line)) && line.at < line.end)
            e->weights++;
        else
            OCT_TRY(read_layer(e, &w, err));
    }
    return OCT_OK;
}

/* ---- writing ---- */

/* The factors of weights, by which the largest of an output channel, or of a group, becomes 127. */
static oct_status put_weights(oct_buf *out, const oct_tensor *w, const oct_weight_layout *l, const char *name,
                              oct_err *err)
{
    const int64_t n = l->groups > 1 ? l->groups : l->outs, per = l->outs / n;
    float *top = oct_calloc((size_t)n, sizeof *top);
    if (!top)
        return oct_nomem(err);
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t c = oct_output_channel(l, i) / per;
        top[c] = fmaxf(top[c], fabsf(((const float *)w->data)[i]));
    }
    oct_buf_printf(out, "%s" WEIGHTS "0", name);
    for (int64_t c = 0; c < n; c++) {
        char text[32];
        oct_buf_printf(out, " %s", oct_f32_text(text, top[c] >= 1e-30f ? 127 / top[c] : 1));
    }
    oct_buf_puts(out, "\n");
    oct_free(top);
    return OCT_OK;
}

/* The row of a node's first input where ncnn could run the node on integers: one matrix or kernel of float weights.
 * NULL: it could not. */
static const oct_encoding_row *row_of(const oct_encoding_rows *rows, int node, oct_weight_layout *l)
{
    const oct_node *n = &rows->g->node[node];
    const oct_tensor *w = oct_layer_weights(rows->g, node);
    if (!w || w->dtype != OCT_F32 || !w->data || oct_op_of(rows->g, node)->quant != OCT_QUANT_WEIGHTED ||
        !oct_layer_layout(rows->g, node, l) || l->matrices != 1 || l->groups < 1 || l->outs < l->groups || n->in[0] < 0)
        return NULL;
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(rows->v[i].name, rows->g->value[n->in[0]].name) == 0)
            return &rows->v[i];
    return NULL;
}

static oct_status write(oct_encoding_rows *rows, oct_buf *out, oct_err *err)
{
    for (int inputs = 0; inputs < 2; inputs++)
        for (size_t i = 0; i < rows->g->n_order; i++) {
            const int id = rows->g->order[i];
            const oct_node *n = &rows->g->node[id];
            oct_weight_layout l;
            const oct_encoding_row *r = row_of(rows, id, &l);
            const char *name = *n->name ? n->name : rows->g->value[n->out[0]].name;
            char text[32];
            if (!r)
                continue;
            OCT_TRY(oct_encoding_check_name(name, " #", err));
            if (strlen(name) > MOST_NAME - sizeof WEIGHTS)
                return oct_fail(err, OCT_EUSAGE, "the name '%.200s' is longer than ncnn reads", name);
            rows->written += inputs;
            if (inputs)
                oct_buf_printf(out, "%s %s\n", name, oct_f32_text(text, (float)(1 / (double)r->q.scale)));
            else
                OCT_TRY(put_weights(out, oct_layer_weights(rows->g, id), &l, name, err));
        }
    return OCT_OK;
}

const oct_encoding_form oct_encoding_ncnn = {
    .name = "ncnn",
    .summary = "table of ncnn2table",
    .symmetric = true,
    .by_layer = true,
    .claims = claims,
    .read = read,
    .write = write,
};
