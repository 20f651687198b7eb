/* lib/encodings/take.c -- from the entries of a file to a calibration table of a model. */
#include "encodings/encodings_int.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The name of a layer, or of its first output if it has none. */
static const char *layer_name(const oct_graph *g, const oct_node *n)
{
    return *n->name || n->n_out == 0 || n->out[0] < 0 ? n->name : g->value[n->out[0]].name;
}

/* The first input of a layer; -1: there is none of that name. */
static int input_of_layer(const oct_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        if (n->n_in > 0 && *layer_name(g, n) && strcmp(layer_name(g, n), name) == 0)
            return n->in[0];
    }
    return -1;
}

/* A second entry for a tensor extends its range; its parameters are kept if they are equal. */
static void pin_also(oct_calib_tensor *to, const oct_calib_tensor *from)
{
    const bool first = !to->pinned, same = to->exact.bits == from->exact.bits && to->exact.scale == from->exact.scale &&
                                           to->exact.zero == from->exact.zero;
    to->off |= from->off;
    to->pinned |= from->pinned;
    to->pin = (oct_range){ fminf(to->pin.lo, from->pin.lo), fmaxf(to->pin.hi, from->pin.hi) };
    to->exact = first || same ? from->exact : (oct_calib_exact){ 0 };
}

/* What entries of a form are about: layers that read something, or tensors that are computed. NULL: the i-th is not
 * such. */
static const char *subject_at(const oct_encoding_form *f, const oct_graph *g, size_t i)
{
    if (!f->by_layer)
        return i < g->n_value && !g->value[i].dead && !g->value[i].constant ? g->value[i].name : NULL;
    const oct_node *n = i < g->n_order ? &g->node[g->order[i]] : NULL;
    return n && n->n_in > 0 && *layer_name(g, n) ? layer_name(g, n) : NULL;
}

/* The names that are nearest to one of the file's; `open`: of those alone that the file has no entry of. */
static oct_nearest nearest_to(const oct_encodings *e, const char *name, const oct_graph *g, bool open)
{
    oct_nearest near = { .word = name, .most = 3 };
    const size_t n = e->form->by_layer ? g->n_order : g->n_value;
    for (size_t i = 0; i < n; i++) {
        const char *subject = subject_at(e->form, g, i);
        if (subject && !(open && oct_calib_find(e->ranges, subject)))
            oct_nearest_try(&near, subject);
    }
    return near;
}

static void name_other(const oct_encodings *e, const char *name, const oct_graph *g, oct_encodings_match *m)
{
    const oct_nearest near = nearest_to(e, name, g, true);
    snprintf(m->other, sizeof m->other, "%s", name);
    snprintf(m->near, sizeof m->near, "%s", near.n ? near.name[0] : "");
}

void oct_encodings_say_others(const oct_encodings_match *m, char *text, size_t size)
{
    const int n =
        snprintf(text, size, "entries of nothing that the model has: %zu, the first '%s'", m->others, m->other);
    if (m->near[0] && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " (is '%s' meant?)", m->near);
}

static oct_status take_entry(const oct_encodings *e, const oct_calib_tensor *t, const oct_graph *g, oct_calib *into,
                             oct_encodings_match *m, oct_err *err)
{
    const int v = e->form->by_layer ? input_of_layer(g, t->name) : oct_graph_find(g, t->name);
    oct_calib_tensor *to;
    if (v < 0) {
        if (!m->others++)
            name_other(e, t->name, g, m);
        return OCT_OK;
    }
    if (g->value[v].constant) {
        m->weights++;
        return OCT_OK;
    }
    OCT_TRY(oct_calib_add(into, g->value[v].name, &to, err));
    pin_also(to, t);
    m->taken++;
    return OCT_OK;
}

/* The first name in the file, and what in the model comes nearest. */
static oct_status none_taken(const oct_encodings *e, const char *label, const oct_graph *g, oct_err *err)
{
    const char *name = e->ranges->n_tensors ? e->ranges->tensors[0]->name : NULL;
    if (!name)
        return oct_fail(err, OCT_EUSAGE, "%s: it has no range for any tensor", label);
    oct_fail(err, OCT_EUSAGE,
             "%s: made for another model: none of its %zu names, the first being '%.100s', is that of a %s of this one",
             label, e->ranges->n_tensors, name, e->form->by_layer ? "layer" : "tensor");
    if (!e->form->by_layer && input_of_layer(g, name) >= 0)
        oct_hint(err, "'%.100s' is a layer: a table of ncnn begins with the lines of weights, %.100s_param_0", name,
                 name);
    const oct_nearest near = nearest_to(e, name, g, false);
    oct_nearest_hint(&near, 3, "make the file from this model, or rename what is in it", err);
    return OCT_EUSAGE;
}

oct_status oct_encodings_take(const oct_encodings *e, const char *label, const oct_graph *g, oct_calib *into,
                              oct_encodings_match *m, oct_err *err)
{
    *m = (oct_encodings_match){ .form = e->form, .weights = e->weights };
    for (size_t i = 0; i < e->ranges->n_tensors; i++)
        OCT_TRY(take_entry(e, e->ranges->tensors[i], g, into, m, err));
    return m->taken ? OCT_OK : none_taken(e, label, g, err);
}

/* ---- files ---- */

static oct_status from_bytes(const void *data, size_t size, const char *label, const oct_graph *g, oct_calib **out,
                             oct_encodings_match *m, oct_err *err)
{
    oct_encodings e;
    *m = (oct_encodings_match){ 0 };
    if (oct_encoding_is_table(data, size))
        return oct_calib_parse(data, size, label, out, err);
    oct_calib *c = oct_calib_create();
    oct_status s = oct_encodings_parse(data, size, label, &e, err);
    if (s == OCT_OK)
        s = c ? oct_encodings_take(&e, label, g, c, m, err) : oct_nomem(err);
    oct_encodings_free(&e);
    if (s == OCT_OK)
        *out = c;
    else
        oct_calib_destroy(c);
    return s;
}

oct_status oct_encodings_load(const char *path, const oct_graph *g, oct_calib **out, oct_encodings_match *m,
                              oct_err *err)
{
    enum { MOST = 512 << 20 };
    oct_map map;
    if (strcmp(path, "-") == 0) {
        char *data;
        size_t size;
        OCT_TRY(oct_read_all(path, MOST, &data, &size, err));
        const oct_status s = from_bytes(data, size, "standard input", g, out, m, err);
        oct_free(data);
        return s;
    }
    OCT_TRY(oct_map_open(&map, path, err));
    const oct_status s = from_bytes(map.data, map.size, path, g, out, m, err);
    oct_map_close(&map);
    return s;
}
