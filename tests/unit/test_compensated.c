/* Compensated rounding, against a reference written out here. */
#include "converted.h"

#include "quant/weights/constants.h"

TEST_GROUP(folder_make, folder_remove);

enum { DEPTH = 100, NEURONS = 5, LATENT = 3, POSITIONS = 1024 }; /* the last: that are drawn for a layer as deep */

/* Samples of few sources: inputs go together, in all halves alike. Position p of `positions` has channels by rows of
 * one matrix. */
static void correlate(work *w, size_t channels, size_t positions)
{
    uint32_t seed = 41;
    float *mix = calloc(channels * LATENT, sizeof *mix);
    net_fill(mix, channels * LATENT, 43);
    for (int r = 0; r < ROWS; r++)
        for (size_t p = 0; p < positions; p++) {
            float z[LATENT];
            for (int k = 0; k < LATENT; k++)
                z[k] = (float)(net_next(&seed) % 2001) / 1000.0f - 1;
            for (size_t c = 0; c < channels; c++) {
                float v = 0.02f * ((float)(net_next(&seed) % 2001) / 1000.0f - 1);
                for (int k = 0; k < LATENT; k++)
                    v += mix[c * LATENT + (size_t)k] * z[k];
                w->x[r][c * positions + p] = v;
            }
        }
    free(mix);
}

/* x of A x = b for the n by n matrix a, which is positive definite; both are overwritten. */
static void solve(double *a, double *b, int n)
{
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            const double f = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
            b[i] -= f * b[k];
        }
    for (int k = n; k-- > 0;) {
        for (int j = k + 1; j < n; j++)
            b[k] -= a[k * n + j] * b[j];
        b[k] /= a[k * n + k];
    }
}

/* How far, in steps, the rounded weights q[n] of one output are at most from what they should be, with moments h[n][n]:
 * input after input in the given order, where those that are left could still be anything. The least error with the
 * errors e of the earlier ones has H_LL d = H_LE e for the changes d of those left. */
static double farthest(const float *w, const double *h, const int *order, int n, double scale, int limit,
                       const int8_t *q)
{
    double *a = calloc((size_t)(n * n), sizeof *a), *b = calloc((size_t)n, sizeof *b),
           *e = calloc((size_t)n, sizeof *e), most = 0;
    for (int k = 0; k < n; k++) {
        const int left = n - k;
        for (int i = 0; i < left; i++) {
            b[i] = 0;
            for (int j = 0; j < k; j++)
                b[i] += h[order[k + i] * n + order[j]] * e[j];
            for (int j = 0; j < left; j++)
                a[i * left + j] = h[order[k + i] * n + order[k + j]];
        }
        solve(a, b, left);
        const double want = fmin(fmax(((double)w[order[k]] + b[0]) / scale, -limit), limit);
        most = fmax(most, fabs(want - q[order[k]]));
        e[k] = (double)w[order[k]] - q[order[k]] * scale;
    }
    free(a);
    free(b);
    free(e);
    return most;
}

/* Samples of one position each, which is drawn again and again, so that the moments are known: sum of x x', and a
 * hundredth of the mean of its diagonal. */
TEST(rounding_is_that_of_the_reference)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,100");
    correlate(w, DEPTH, 1);
    const int m = net_random(g, "w", "5,100", 17);
    float *v = (float *)(uintptr_t)g->value[m].constant->data;
    uint32_t seed = 19;
    for (int i = 0; i < NEURONS * DEPTH; i++)
        v[i] += (float)(net_next(&seed) % 1000) * 1e-5f;
    net_output(g, NET_NODE(g, "Gemm", "layer", "y", g->input[0], m));
    net_int(g, "transB", 1);
    on(w, "compensated-rounding");
    decide(w);
    assert_string_equal(method(w, "compensated-rounding")->choice, "");
    const int node = node_named(w, "layer");
    const qweights *q = w->c.job->constants[node].weights[0];
    const float *real = oct_layer_weights(w->c.job->g, node)->data;
    static double h[DEPTH * DEPTH];
    int order[DEPTH], moved = 0;
    double trace = 0;
    memset(h, 0, sizeof h);
    for (int k = 0; k < w->rows[0]; k++) {
        const float *x = w->x[w->row[0][k]];
        const int times = (k + 1) * POSITIONS / w->rows[0] - k * POSITIONS / w->rows[0];
        for (int i = 0; i < DEPTH * DEPTH; i++)
            h[i] += times * (double)x[i / DEPTH] * (double)x[i % DEPTH];
    }
    for (int i = 0; i < DEPTH; i++) {
        int at = i;
        for (; at > 0 && h[order[at - 1] * (DEPTH + 1)] < h[i * (DEPTH + 1)]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        trace += h[i * (DEPTH + 1)];
    }
    for (int i = 0; i < DEPTH; i++)
        h[i * (DEPTH + 1)] += 0.01 * trace / DEPTH;
    for (int o = 0; o < NEURONS; o++) {
        const double scale = (double)q->quant.scale[o];
        const int8_t *got = (const int8_t *)q->qvals->data + o * DEPTH;
        assert_true(farthest(real + o * DEPTH, h, order, DEPTH, scale, q->limit, got) < 0.51);
        for (int i = 0; i < DEPTH; i++)
            moved += got[i] != (int)rint((double)real[o * DEPTH + i] / scale);
    }
    assert_true(moved > 20); /* from the nearest value */
    free_work(w);
}

typedef struct conv_case {
    const char *input, *weights;
    int group, stride, dilation, pad;
} conv_case;

/* Sum of the squares of what a convolution makes of the weights' errors, at all positions of the samples of the first
 * half. */
static double patch_error(const work *w, const conv_case *k, const float *real, const qweights *q)
{
    oct_dim in[4], kernel[4];
    net_dims(w->m.graph, k->input, in);
    net_dims(w->m.graph, k->weights, kernel);
    const int ins = (int)in[1].n, high = (int)in[2].n, wide = (int)in[3].n, outs = (int)kernel[0].n,
              depth = (int)kernel[1].n, side = (int)kernel[2].n;
    const int reach = (side - 1) * k->dilation + 1;
    double sum = 0;
    assert_int_equal(depth * k->group, ins);
    for (int n = 0; n < w->rows[0]; n++)
        for (int o = 0; o < outs; o++)
            for (int y0 = -k->pad; y0 + reach <= high + k->pad; y0 += k->stride)
                for (int x0 = -k->pad; x0 + reach <= wide + k->pad; x0 += k->stride) {
                    double e = 0;
                    for (int c = 0; c < depth; c++)
                        for (int t = 0; t < side * side; t++) {
                            const int at = (o * depth + c) * side * side + t, y = y0 + t / side * k->dilation,
                                      x = x0 + t % side * k->dilation;
                            const int channel = o / (outs / k->group) * depth + c;
                            if (y >= 0 && y < high && x >= 0 && x < wide)
                                e += ((double)real[at] -
                                      ((const int8_t *)q->qvals->data)[at] * (double)q->quant.scale[o]) *
                                     (double)w->x[w->row[0][n]][(channel * high + y) * wide + x];
                        }
                    sum += e * e;
                }
    return sum;
}

/* method, other: methods that are on, or NULL. */
static work *converted_conv(const conv_case *k, const char *target, const char *method, const char *other)
{
    work *w = new_work_for(target);
    oct_graph *g = w->m.graph;
    oct_dim in[4];
    set_input(w, k->input);
    net_dims(g, k->input, in);
    correlate(w, (size_t)in[1].n, (size_t)(in[2].n * in[3].n));
    const int y = NET_NODE(g, "Conv", "layer", "y", g->input[0], net_random(g, "w", k->weights, 23));
    net_int(g, "group", k->group);
    NET_INTS(g, "strides", k->stride, k->stride);
    NET_INTS(g, "dilations", k->dilation, k->dilation);
    NET_INTS(g, "pads", k->pad, k->pad, k->pad, k->pad);
    net_output(g, y);
    if (method)
        on(w, method);
    if (other)
        on(w, other);
    decide(w);
    return w;
}

TEST(rounding_helps_convolutions)
{
    static const conv_case cases[] = {
        { "1,12,8,8", "6,12,1,1", 1, 1, 1, 0 }, { "1,6,9,9", "8,6,3,3", 1, 1, 1, 1 },
        { "1,8,9,9", "6,4,3,3", 2, 1, 1, 0 },   { "1,6,11,11", "6,6,3,3", 1, 2, 1, 1 },
        { "1,6,11,11", "4,6,3,3", 1, 1, 2, 2 }, { "1,12,11,11", "8,6,3,3", 2, 2, 2, 1 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        work *w[2];
        double error[2];
        for (int k = 0; k < 2; k++) {
            w[k] = converted_conv(&cases[i], "octet", k ? "compensated-rounding" : NULL, NULL);
            const int node = node_named(w[k], "layer");
            error[k] = patch_error(w[k], &cases[i], oct_layer_weights(w[k]->c.job->g, node)->data,
                                   w[k]->c.job->constants[node].weights[0]);
        }
        const qweights *a = w[0]->c.job->constants[node_named(w[0], "layer")].weights[0];
        const qweights *b = w[1]->c.job->constants[node_named(w[1], "layer")].weights[0];
        if (!(error[1] < 0.7 * error[0]))
            fail_msg("case %zu: %g of %g (%s)", i, error[1], error[0], method(w[1], "compensated-rounding")->choice);
        assert_memory_equal(a->quant.scale, b->quant.scale, (size_t)a->quant.n * sizeof(float));
        for (int64_t e = 0; e < b->qvals->count; e++)
            assert_in_range(((const int8_t *)b->qvals->data)[e] + b->limit, 0, 2 * b->limit);
        free_work(w[0]);
        free_work(w[1]);
    }
}

/* Elements of a convolution's weights in the order in which they are multiplied, (ky, kx, ic): two in a row are added
 * in 16 bits. */
static bool pairs_fit(const qweights *q, const oct_dim *kernel)
{
    const int8_t *v = q->qvals->data;
    const int ins = (int)kernel[1].n, taps = (int)(kernel[2].n * kernel[3].n);
    for (int o = 0; o < (int)kernel[0].n; o++)
        for (int at = 0; at + 1 < ins * taps; at += 2) {
            const int a = v[(o * ins + at % ins) * taps + at / ins],
                      b = v[(o * ins + (at + 1) % ins) * taps + (at + 1) / ins];
            const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? a : 0) + (b < 0 ? b : 0);
            if (255 * positive > 32767 || 255 * negative < -32768)
                return false;
        }
    return true;
}

/* Where sums of pairs saturate: s8 weights whose pairs fit, at steps of one to two times their own. Weights that are
 * spread evenly lose most by it, about the 6 dB that are allowed where so little is lost by rounding. Also with groups
 * of several channels, an odd number of which makes pairs of different taps. */
TEST(rounding_keeps_pairs_safe)
{
    static const conv_case cases[] = {
        { "1,12,8,8", "6,12,1,1", 1, 1, 1, 0 },
        { "1,7,9,9", "8,7,3,3", 1, 1, 1, 1 },
        { "1,10,9,9", "6,5,3,3", 2, 1, 1, 0 },
        { "1,6,9,9", "12,1,3,3", 6, 1, 1, 1 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        work *w[2] = { converted_conv(&cases[i], "onnxruntime-x86", "compensated-rounding", NULL),
                       converted_conv(&cases[i], "onnxruntime-x86", "compensated-rounding", "safe-pairs") };
        const qweights *q[2];
        oct_dim kernel[4];
        double error[2];
        net_dims(w[0]->m.graph, cases[i].weights, kernel);
        for (int k = 0; k < 2; k++) {
            const int node = node_named(w[k], "layer");
            q[k] = w[k]->c.job->constants[node].weights[0];
            error[k] = patch_error(w[k], &cases[i], oct_layer_weights(w[k]->c.job->g, node)->data, q[k]);
        }
        assert_false(pairs_fit(q[0], kernel));
        assert_int_equal(q[0]->quant.dtype, OCT_U8);
        assert_true(pairs_fit(q[1], kernel));
        assert_int_equal(q[1]->quant.dtype, OCT_S8);
        assert_non_null(strstr(q[1]->remedy, "made safe"));
        assert_true(error[1] < 5 * error[0]);
        for (int c = 0; c < q[0]->quant.n; c++)
            assert_true(q[1]->quant.scale[c] >= q[0]->quant.scale[c] &&
                        q[1]->quant.scale[c] <= 2 * q[0]->quant.scale[c]);
        oct_conversion_changed(&w[1]->c);
        GOOD(oct_conversion_settle(&w[1]->c, err));
        assert_ptr_equal(w[1]->c.job->constants[node_named(w[1], "layer")].weights[0]->qvals,
                         q[1]->qvals); /* decided again, they stay */
        free_work(w[0]);
        free_work(w[1]);
    }
}

/* Each channel of a depthwise convolution alone, where neighbours are alike. */
TEST(rounding_helps_depthwise)
{
    static const conv_case k = { "1,6,10,10", "6,1,3,3", 6, 1, 1, 1 };
    double error[2];
    for (int c = 0; c < 2; c++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        set_input(w, k.input);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < 600; i++)
                w->x[r][i] = sinf(0.2f * (float)(i % 100 / 10 + r) + 0.15f * (float)(i % 10) + (float)(i / 100)) +
                             0.05f * w->x[r][i];
        const int y = NET_NODE(g, "Conv", "layer", "y", g->input[0], net_random(g, "w", k.weights, 29));
        net_int(g, "group", 6);
        NET_INTS(g, "pads", 1, 1, 1, 1);
        net_output(g, y);
        if (c)
            on(w, "compensated-rounding");
        decide(w);
        const int node = node_named(w, "layer");
        error[c] = patch_error(w, &k, oct_layer_weights(w->c.job->g, node)->data, w->c.job->constants[node].weights[0]);
        free_work(w);
    }
    assert_true(error[1] < 0.7 * error[0]);
}

/* Rows of a matrix with more than one dimension before its channels. */
TEST(rounding_helps_products)
{
    enum { IN = 20, OUT = 6, ROW = 7 };
    double error[2] = { 0, 0 };
    for (int c = 0; c < 2; c++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        static float by_channel[ROWS][IN * ROW];
        set_input(w, "1,7,20");
        correlate(w, IN, ROW);
        for (int r = 0; r < ROWS; r++) {
            memcpy(by_channel[r], w->x[r], sizeof by_channel[r]);
            for (int i = 0; i < IN * ROW; i++)
                w->x[r][i] = by_channel[r][i % IN * ROW + i / IN];
        }
        net_output(g, NET_NODE(g, "MatMul", "layer", "y", g->input[0], net_random(g, "w", "20,6", 37)));
        if (c)
            on(w, "compensated-rounding");
        decide(w);
        const int node = node_named(w, "layer");
        const qweights *q = w->c.job->constants[node].weights[0];
        const float *real = oct_layer_weights(w->c.job->g, node)->data;
        for (int k = 0; k < w->rows[0] * ROW * OUT; k++) {
            const float *x = w->x[w->row[0][k / (ROW * OUT)]] + k / OUT % ROW * IN;
            double e = 0;
            for (int i = 0; i < IN; i++) {
                const int at = i * OUT + k % OUT;
                e += ((double)real[at] -
                      ((const int8_t *)q->qvals->data)[at] * (double)q->quant.scale[q->quant.n > 1 ? k % OUT : 0]) *
                     (double)x[i];
            }
            error[c] += e * e;
        }
        free_work(w);
    }
    assert_true(error[1] < 0.7 * error[0]);
}

/* Pictures: waves of long periods, as neighbouring pixels are alike. */
static void paint(work *w, int channels, int side)
{
    uint32_t seed = 91;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < channels; c++) {
            double f[6], *a = f;
            for (int k = 0; k < 6; k++)
                f[k] = (double)(net_next(&seed) % 1000) / 1000;
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++)
                    w->x[r][(c * side + y) * side + x] =
                        (float)(0.5 + 0.3 * a[0] * cos(0.3 * a[1] * x + 0.3 * a[2] * y) +
                                0.2 * a[3] * sin(0.5 * a[4] * x - 0.4 * a[5] * y));
        }
}

typedef struct pixel_conv {
    int outs, kernel;
} pixel_conv;

typedef struct pixel_net {
    int channels;
    pixel_conv conv[4];
} pixel_net;

/* What rounded weights leave at the output, with the biases corrected; compensated: and rounded so. */
static double weight_noise(const pixel_net *net, bool compensated)
{
    enum { SIDE = 20 };
    static const char *const name[] = { "c0", "c1", "c2", "c3" }, *const weights[] = { "w0", "w1", "w2", "w3" },
                             *const out[] = { "y0", "y1", "y2", "y3" };
    static const char *const act[] = { "a0", "a1", "a2" }, *const relu[] = { "r0", "r1", "r2" };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    char dims[40];
    snprintf(dims, sizeof dims, "1,%d,%d,%d", net->channels, SIDE, SIDE);
    set_input(w, dims);
    paint(w, net->channels, SIDE);
    int v = g->input[0], ins = net->channels;
    for (int k = 0; k < 4 && net->conv[k].outs; k++) {
        const pixel_conv *c = &net->conv[k];
        const int pad = c->kernel / 2;
        snprintf(dims, sizeof dims, "%d,%d,%d,%d", c->outs, ins, c->kernel, c->kernel);
        v = NET_NODE(g, "Conv", name[k], out[k], v, net_random(g, weights[k], dims, 95u + (uint32_t)k));
        NET_INTS(g, "pads", pad, pad, pad, pad);
        if (k < 3 && net->conv[k + 1].outs)
            v = NET_NODE(g, "Relu", relu[k], act[k], v);
        ins = c->outs;
    }
    net_output(g, v);
    on(w, "bias-weights");
    on(w, "bias-inputs");
    on(w, "bias-sequence");
    if (compensated)
        on(w, "compensated-rounding");
    decide(w);
    const oct_sim_mask alone = { .no_values = true, .weights = OCT_SIM_ROUNDED_WEIGHTS };
    const double noise = measured(w, 1, &alone).noise;
    free_work(w);
    return noise;
}

/* Of small networks that map pixels to pixels, rounded weights cost at most half of what they cost with corrected
 * biases alone. */
TEST(rounding_helps_pixels)
{
    static const pixel_net nets[] = {
        { 1, { { 12, 5 }, { 8, 1 }, { 4, 3 } } },          /* super-resolution: pixels of each in four channels */
        { 3, { { 16, 3 }, { 16, 3 }, { 3, 3 } } },         /* what a picture lacks */
        { 1, { { 8, 3 }, { 8, 3 }, { 8, 3 }, { 2, 3 } } }, /* colours of grey pictures */
    };
    for (size_t i = 0; i < OCT_COUNT(nets); i++) {
        const double with = weight_noise(&nets[i], true), without = weight_noise(&nets[i], false);
        if (!(with <= 0.5 * without))
            fail_msg("network %zu: %g of %g", i, with, without);
    }
}
