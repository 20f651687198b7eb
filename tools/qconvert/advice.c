/* Advice after a conversion: what else to try, and the expected gain. Without samples, it is a command with samples. For a target with bfloat16, it is
 * bfloat16 if that is expected to be faster than the decisions. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"
#include "kernels/cost.h"
#include "ops/traits.h"
#include "quant/expected.h"

#include <string.h>

/* Whether an earlier integer layer has the same weights, as may happen in several bodies. */
static bool has_counted(const oct_layer *layers, size_t i)
{
    const oct_tensor *w = oct_layer_weights(layers[i].d.graph, layers[i].d.node);
    for (size_t k = 0; k < i && w; k++) {
        const oct_tensor *other = layers[k].d.integer ? oct_layer_weights(layers[k].d.graph, layers[k].d.node) : NULL;
        if (other && other->data == w->data)
            return true;
    }
    return false;
}

/* How many bytes the file loses if integer layers have one byte for each weight. */
static uint64_t saved_bytes(const oct_layer *layers, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        if (layers[i].product && layers[i].d.integer && !has_counted(layers, i))
            bytes += 3 * (uint64_t)layers[i].weight_count;
    return bytes;
}

/* Counts what the layers of the model in the file would become with samples. */
static oct_status forecast(const session *s, oct_layer_count *out, uint64_t *saved, oct_err *err)
{
    oct_model *m = NULL;
    oct_qjob *job = NULL;
    oct_layer *layers = NULL;
    size_t n = 0;
    oct_status st = oct_model_load(s->a->model, &m, err);
    if (st == OCT_OK)
        st = session_preview(s, m->graph, &job, &layers, &n, err);
    *out = oct_layers_count(layers, n);
    *saved = st == OCT_OK ? saved_bytes(layers, n) : 0;
    oct_qjob_destroy(job);
    oct_model_free(m);
    return st;
}

/* Whether c channels of h by w are a picture, and not a spectrogram or another table: three channels, or one channel about as high as wide. h and w below 1:
 * not known. */
static bool is_picture(int64_t c, int64_t h, int64_t w)
{
    enum { SMALLEST = 16 };
    const bool known = h > 0 && w > 0, shaped = known && h >= SMALLEST && w >= SMALLEST && h <= 2 * w && w <= 2 * h;
    return shaped ? c == 3 || c == 1 : !known && c == 3;
}

/* Guesses from the shape of the first input what the samples are. */
static void guess_data(const oct_graph *g, oct_buf *b)
{
    static const oct_dim none[4] = { { 0 } };
    const oct_shape *s = g->n_input == 1 ? &g->value[g->input[0]].shape : NULL;
    const oct_dim *d = s && s->rank == 4 ? s->d : none;
    const bool last = d[1].n != 3 && d[1].n != 1 && (d[3].n == 3 || d[3].n == 1);
    const int64_t c = d[last ? 3 : 1].n, h = d[last ? 1 : 2].n, w = d[last ? 2 : 3].n;
    if (!is_picture(c, h, w)) {
        oct_buf_puts(b, g->n_input == 1 ? " --data SAMPLES.npy" : " --data SAMPLES.npz");
        return;
    }
    oct_buf_puts(b, " --data PHOTOS/ --preprocess ");
    oct_buf_puts(b, c == 1 ? "unit:order=gray" : last ? "imagenet-tf:layout=nhwc" : h == 224 || h < 1 ? "imagenet" : "unit");
    if (h < 1 || w < 1 || (h == 224 && w == 224 && c != 1))
        return;
    if (last && c == 3)
        oct_buf_printf(b, ":resize=%lld:crop=%lldx%lld", (long long)((h < w ? h : w) * 256 / 224), (long long)w, (long long)h);
    else
        oct_buf_printf(b, ":resize=%lldx%lld", (long long)w, (long long)h);
}

static oct_status ask_for_samples(const session *s, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    oct_layer_count n;
    char text[32], part[32];
    const size_t now = oct_layers_count(s->c.layers, s->c.n_layers).integer;
    if (strcmp(s->a->model, "-") == 0 || s->c.o.job.scheme == OCT_SCHEME_BF16 || s->c.o.job.scheme == OCT_SCHEME_DYNAMIC ||
        s->c.o.job.scheme == OCT_SCHEME_WEIGHT_ONLY)
        return OCT_OK; /* nothing would change */
    if (s->c.o.job.scheme == OCT_SCHEME_FP16) {
        fputs("\nThere were no samples: whether the activations stay within float16's 65504 is not known, so what is known to be risky\n"
              "stays float. With --data the layers of which they do not are found, and the others become float16.\n"
              "On CPUs float16 halves the file and is not faster than float32; 8 bits are.\n", f);
        return OCT_OK;
    }
    uint64_t saved;
    OCT_TRY(forecast(s, &n, &saved, err));
    if (n.integer == 0)
        return OCT_OK;
    oct_print(f, "\nThere were no samples: %zu of %zu layers with weights %s float%s.\n", n.products - now, n.products,
              n.products - now == 1 ? "stays" : "stay", now < n.products ? " (an integer Conv needs the range of its input and output)" : "");
    oct_buf b = OCT_BUF_INIT;
    session_command(s, false, &b);
    guess_data(s->m->graph, &b);
    oct_print(f, "With some 100 typical samples try:\n");
    oct_print(f, "\n    %s\n\n", oct_buf_str(&b));
    oct_buf_free(&b);
    oct_print(f, "Then %zu of %zu would be int8: %s of the weights", n.integer, n.products,
              oct_fmt_percent(text, n.weights ? (double)n.integer_weights / (double)n.weights : 0));
    if (n.macs)
        oct_print(f, ", %s of the multiplications", oct_fmt_percent(part, (double)n.integer_macs / (double)n.macs));
    if (saved < s->c.size_before) /* weights that the file does not store as floats may count for more */
        oct_print(f, ", a file of about %s", oct_fmt_bytes(text, s->c.size_before - saved));
    fputs(".\n", f);
    if (s->m->graph->n_input > 1) {
        oct_print(f, "The .npz holds an array per input:");
        for (size_t i = 0; i < s->m->graph->n_input; i++)
            oct_print(f, " %s", s->m->graph->value[s->m->graph->input[i]].name);
        fputc('\n', f);
    }
    return OCT_OK;
}

/* Recommends bf16 if products in bf16 are expected to take less time here than the decisions. */
static void prefer_bf16(const session *s)
{
    enum { WORTH_SAYING = 95 }; /* percent of the time, at most */
    const oct_expected t = oct_expected_times(s->c.layers, s->c.n_layers, oct_isa_active());
    if (!oct_target_bfloat16(s->target) || oct_scheme_is_half(s->c.o.job.scheme) || t.bf16 * 100 >= t.decided * WORTH_SAYING)
        return;
    char text[32];
    oct_print(oct_cli_result(s->cli), "\nOn this CPU (%s) the products of these layers are expected to take %s of the time in bf16, which needs no samples:\n"
              "try --scheme bf16, or qeval --compute bf16 for what it would lose.\n",
              oct_cost_class(), oct_fmt_percent(text, t.bf16 / t.decided));
}

oct_status advice_print(const session *s, oct_err *err)
{
    prefer_bf16(s);
    /* with a size, samples change what is chosen, but not the size */
    return s->c.calib || s->c.size.n ? OCT_OK : ask_for_samples(s, err);
}
