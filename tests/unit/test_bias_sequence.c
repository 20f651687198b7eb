/* Biases that keep means. */
#include "converted.h"

#include "quant/job/annotate.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

TEST_GROUP(folder_make, folder_remove);

enum { WIDTH = 48, LEVELS = 3, SPOTS = 16 };

/* 1x1 convolutions: means of outputs follow from means of inputs. `against`: the second half has the opposite sign. */
static work *converted_chain(bool against)
{
    static const char *const out[] = { "y0", "y1", "y2" }, *const name[] = { "l0", "l1", "l2" },
                             *const weights[] = { "w0", "w1", "w2" };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,48,4,4");
    for (int r = 0; r < ROWS; r++)
        for (size_t i = 0; i < w->size; i++)
            w->x[r][i] = (against && r % 2 ? -1 : 1) * (1 + 0.05f * w->x[r][i]);
    int v = g->input[0];
    for (int k = 0; k < LEVELS; k++)
        v = NET_NODE(g, "Conv", name[k], out[k], v, net_random(g, weights[k], "48,48,1,1", 31u + (uint32_t)k));
    net_output(g, v);
    on(w, "bias-sequence");
    decide(w);
    return w;
}

/* Means of the inputs of layer k in graph g for sample n of the first half; rounds: as integers have the model's input.
 */
static void input_means(const work *w, const oct_graph *g, int k, bool rounds, int n, double mean[WIDTH])
{
    static const char *const in[] = { NULL, "y0", "y1" };
    static float v[MOST];
    const oct_quant *q = oct_quant_of(w->c.job, w->c.job->g->input[0]);
    const float *first = w->x[w->row[0][n]];
    memset(mean, 0, WIDTH * sizeof *mean);
    if (k > 0)
        value_of(g, in[k], first, v);
    for (int i = 0; i < WIDTH * SPOTS; i++) {
        const double x = k > 0    ? (double)v[i]
                         : rounds ? rounded((double)first[i], (double)q->scale[0], q->zp[0])
                                  : (double)first[i];
        mean[i / SPOTS] += x / SPOTS;
    }
}

/* What is to be added, of what each sample lacks: the mean, less the share of its square that chance explains. */
static double shrunk_mean(const double *lacks, int n)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += lacks[i] / n;
    for (int i = 0; i < n; i++)
        squares += (lacks[i] - mean) * (lacks[i] - mean);
    return fmax(0, 1 - squares / (n - 1) / n / (mean * mean)) * mean;
}

TEST(biases_keep_means)
{
    static const char *const name[] = { "l0", "l1", "l2" };
    work *w = converted_chain(false);
    const oct_method_result *r = method(w, "bias-sequence");
    const oct_qjob *j = w->c.job;
    oct_graph *copy;
    double worst_without = 0;
    assert_true(r->ran && r->after > r->before && !*r->choice);
    GOOD(oct_quantized_copy(w->c.job, &copy, err));
    for (int k = 0; k < LEVELS; k++) {
        double real[ROWS][WIDTH], quant[ROWS][WIDTH];
        const int node = node_named(w, name[k]), rows = w->rows[0];
        const qweights *q = j->constants[node].weights[0];
        const oct_quant *bias = j->constants[node].bias;
        const float *weights = oct_layer_weights(j->g, node)->data;
        for (int n = 0; n < rows; n++) {
            input_means(w, j->g, k, false, n, real[n]);
            input_means(w, copy, k, true, n, quant[n]);
        }
        assert_non_null(bias);
        for (int o = 0; o < WIDTH; o++) {
            const double step = (double)bias->scale[bias->n > 1 ? o : 0];
            double lacks[ROWS] = { 0 };
            for (int n = 0; n < rows; n++)
                for (int i = 0; i < WIDTH; i++)
                    lacks[n] +=
                        (double)weights[o * WIDTH + i] * real[n][i] -
                        ((const int8_t *)q->qvals->data)[o * WIDTH + i] * (double)q->quant.scale[o] * quant[n][i];
            const double want = shrunk_mean(lacks, rows);
            worst_without = fmax(worst_without, fabs(want) / step);
            const double off = ((const int32_t *)bias->qvals->data)[o] * step - want;
            if (fabs(off) > step)
                fail_msg("layer %d, channel %d: off by %g steps", k, o, off / step);
        }
    }
    assert_true(worst_without > 20);
    oct_graph_destroy(copy);
    free_work(w);
}

TEST(biases_stay_where_a_check_says_so)
{
    work *w = converted_chain(true);
    const oct_method_result *r = method(w, "bias-sequence");
    assert_true(r->ran && strstr(r->choice, "biases stay") && r->after == r->before);
    assert_null(w->c.job->constants[node_named(w, "l0")].bias);
    free_work(w);
}
