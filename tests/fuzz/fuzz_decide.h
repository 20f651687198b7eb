/* What fuzz targets of policies and of deployment targets share: a small network, decided. */
#ifndef OCT_FUZZ_DECIDE_H
#define OCT_FUZZ_DECIDE_H

#include "base/mem.h"
#include "onnx/model.h"
#include "quant/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(oct_status s, const oct_err *err)
{
    if (s == OCT_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    abort();
}

/* The same statistics for every value. */
static void give_statistics(const oct_qjob *j, oct_calib *c)
{
    static float x[64];
    size_t n;
    const int *axes;
    const char *const *names = oct_qjob_values(j, &axes, &n);
    for (size_t i = 0; i < OCT_COUNT(x); i++)
        x[i] = (float)((int)(i * 37 % 64) - 20) / 8;
    for (size_t i = 0; i < n; i++) {
        oct_calib_tensor *t;
        oct_err err = OCT_ERR_INIT;
        need(oct_calib_add(c, names[i], &t, &err), &err);
        if (oct_stats_finite(&t->stats) == 0)
            need(oct_stats_update(&t->stats, x, OCT_COUNT(x), &err), &err);
    }
}

/* Decides a network by a policy for a target, with statistics or without, and writes it; what comes of it keeps the
 * graph's invariants. */
static void decide(const oct_graph *net, const oct_policy *p, const oct_target *t, bool have_data)
{
    oct_err err = OCT_ERR_INIT;
    const oct_qjob_opts o = { .policy = p, .target = t, .have_data = have_data, .threads = 1 };
    oct_graph *g = NULL;
    oct_qjob *j = NULL;
    oct_calib *c = oct_calib_create();
    need(oct_graph_clone(net, &g, &err), &err);
    oct_status s = c ? oct_qjob_create(g, &o, &j, &err) : OCT_ENOMEM;
    if (s == OCT_OK) {
        give_statistics(j, c);
        s = oct_qjob_decide(j, c, &err);
    }
    if (s == OCT_OK)
        s = oct_qjob_rewrite(j, &err);
    if (s == OCT_OK)
        s = oct_infer_shapes(g, &err);
    if (s == OCT_OK)
        need(oct_graph_check(g, &err), &err);
    if (s == OCT_EINTERNAL)
        need(s, &err);
    oct_qjob_destroy(j);
    oct_calib_destroy(c);
    oct_graph_destroy(g);
}

/* The network, loaded once. */
static const oct_graph *small_network(void)
{
    static oct_model *net;
    oct_err err = OCT_ERR_INIT;
    if (!net)
        need(oct_model_load(OCT_NET, &net, &err), &err);
    return net->graph;
}

/* The input as text, in memory of oct_alloc; NULL: there is none. */
static char *text_of(const uint8_t *data, size_t size)
{
    char *text = oct_alloc(size + 1);
    if (!text)
        return NULL;
    memcpy(text, data, size);
    text[size] = 0;
    return text;
}

#endif
