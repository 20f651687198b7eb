/* Fuzz target: any bytes as what the command of --runner says, from its greeting on: an error, or outputs of the shapes
 * that their heads say. */
#include "base/mem.h"
#include "eval/engines/kept_command.h"
#include "eval/engines/remote.h"
#include "fuzz_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- in place of the command: lib/eval/engines/kept_command.c is not called ---- */

struct oct_kept_command {
    const uint8_t *at, *end;
};

static oct_kept_command said;

oct_status __wrap_oct_kept_start(const char *line, const char *shown, double seconds, oct_kept_command **k,
                                 oct_err *err);
void __wrap_oct_kept_turn(oct_kept_command *k);
oct_status __wrap_oct_kept_write(oct_kept_command *k, const void *p, size_t n, oct_err *err);
oct_status __wrap_oct_kept_line(oct_kept_command *k, char *dst, size_t size, oct_err *err);
oct_status __wrap_oct_kept_read(oct_kept_command *k, void *p, size_t n, oct_err *err);
void __wrap_oct_kept_stop(oct_kept_command *k, bool patient);

oct_status __wrap_oct_kept_start(const char *line, const char *shown, double seconds, oct_kept_command **k,
                                 oct_err *err)
{
    (void)line, (void)shown, (void)seconds, (void)err;
    *k = &said;
    return OCT_OK;
}

void __wrap_oct_kept_turn(oct_kept_command *k)
{
}

oct_status __wrap_oct_kept_write(oct_kept_command *k, const void *p, size_t n, oct_err *err)
{
    (void)k, (void)p, (void)n, (void)err;
    return OCT_OK;
}

oct_status __wrap_oct_kept_line(oct_kept_command *k, char *dst, size_t size, oct_err *err)
{
    const uint8_t *feed = k->at < k->end ? memchr(k->at, '\n', (size_t)(k->end - k->at)) : NULL;
    if (!feed)
        return oct_fail(err, OCT_EIO, "ended");
    const size_t n = (size_t)(feed - k->at);
    if (n >= size || memchr(k->at, 0, n))
        return oct_fail(err, OCT_EMALFORMED, "a line too long, or with a zero");
    memcpy(dst, k->at, n);
    dst[n] = '\0';
    k->at = feed + 1;
    return OCT_OK;
}

oct_status __wrap_oct_kept_read(oct_kept_command *k, void *p, size_t n, oct_err *err)
{
    if (n > (size_t)(k->end - k->at))
        return oct_fail(err, OCT_EIO, "ended");
    memcpy(p, k->at, n);
    k->at += n;
    return OCT_OK;
}

void __wrap_oct_kept_stop(oct_kept_command *k, bool patient)
{
    (void)k, (void)patient;
}

/* ---- the two turns ---- */

static void check_status(oct_status s)
{
    if (s != OCT_EIO && s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED && s != OCT_ENOMEM)
        abort();
}

static void check_outputs(const oct_graph *g, const oct_remote *r)
{
    for (size_t i = 0; i < g->n_output; i++) {
        const oct_operand *t = oct_remote_output(r, i);
        int64_t n = 1;
        for (int k = 0; k < t->rank; k++)
            n *= t->dims[k];
        if (n != t->count || (n && !t->data))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float x[3 * 32 * 32];
    const oct_graph *g = network();
    const oct_input_desc feed = {
        .name = g->value[g->input[0]].name, .dtype = OCT_F32, .rank = 4, .dims = (int64_t[]){ 1, 3, 32, 32 }
    };
    const oct_array in = { .dtype = OCT_F32, .rank = 4, .dims = { 1, 3, 32, 32 }, .data = x, .bytes = sizeof x };
    const oct_remote_opts o = { .command = "runner", .threads = 1, .timeout = 1 };
    oct_err err = OCT_ERR_INIT;
    oct_remote *r = NULL;
    double seconds;
    said = (oct_kept_command){ data, data + size };
    oct_status s = oct_remote_start(&o, "model.onnx", g, &feed, 1, &r, &err);
    if (s == OCT_OK && (!oct_remote_name(r) || strlen(oct_remote_name(r)) > 100))
        abort();
    while (s == OCT_OK)
        if ((s = oct_remote_run(r, &in, &seconds, &err)) == OCT_OK)
            check_outputs(g, r);
    check_status(s);
    oct_remote_stop(r);
    return 0;
}
