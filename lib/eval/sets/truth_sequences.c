/* Labels of places, and texts: from an array, or from lines of JSON. */
#include "eval/sets/truth_int.h"

#include "base/io.h"
#include "base/json_tree.h"

#include <math.h>
#include <string.h>

enum { MOST_LINE = 16 << 20, MOST_TEXT = 1 << 30 };

static bool read_label(double v, int32_t *label)
{
    if (!(v >= -MOST_CLASS && v < MOST_CLASS) || v != floor(v))
        return false;
    *label = (int32_t)v;
    return true;
}

oct_status oct_truth_sequences_of_array(oct_truth *t, const oct_array *a, oct_err *err)
{
    const size_t n = (size_t)a->dims[0], length = (size_t)a->dims[1], size = (size_t)oct_dtype_bits(a->dtype) / 8;
    double *row = oct_arena_calloc(t->arena, length + 1, sizeof *row);
    t->kind = OCT_SET_SEQUENCES;
    t->sequence = oct_arena_calloc(t->arena, n + 1, sizeof *t->sequence);
    if (!row || !t->sequence)
        return oct_nomem(err);
    t->n_sequences = n;
    for (size_t i = 0; i < n; i++) {
        int32_t *label = oct_arena_calloc(t->arena, length + 1, sizeof *label);
        if (!label)
            return oct_nomem(err);
        OCT_TRY(oct_array_convert(a->dtype, (const char *)a->data + i * length * size, OCT_F64, row, length, err));
        for (size_t k = 0; k < length; k++)
            if (!read_label(row[k], &label[k]))
                return oct_fail(err, OCT_EMALFORMED, "[%zu,%zu]: %g is no label", i, k, row[k]);
        t->sequence[i] = (oct_truth_sequence){ .label = label, .n = length };
    }
    return OCT_OK;
}

/* An object with `labels`, a list of numbers, or `text`. */
static oct_status read_object(oct_truth *t, oct_tree *root, oct_truth_sequence *s, oct_err *err)
{
    oct_tree *labels = oct_tree_member(root, "labels");
    const char *text = oct_tree_text(oct_tree_member(root, "text"));
    *s = (oct_truth_sequence){ 0 };
    if (text) {
        s->text = oct_arena_strdup(t->arena, text);
        return s->text ? OCT_OK : oct_nomem(err);
    }
    if (!oct_tree_is_list(labels))
        return oct_fail(err, OCT_EMALFORMED, "neither labels, a list, nor text");
    s->n = oct_tree_count(labels);
    int32_t *v = oct_arena_calloc(t->arena, s->n + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    s->label = v;
    for (size_t i = 0; i < s->n; i++) {
        double x;
        if (!oct_tree_number(oct_tree_at(labels, i), &x) || !read_label(x, &v[i]))
            return oct_fail(err, OCT_EMALFORMED, "labels[%zu] is no label", i);
    }
    return OCT_OK;
}

static oct_status read_line(oct_truth *t, const char *line, size_t n, size_t *cap, oct_err *err)
{
    oct_tree *root;
    if (n > MOST_LINE)
        return oct_fail(err, OCT_EMALFORMED, "a line of %zu bytes", n);
    if (!OCT_GROW(t->arena, t->sequence, t->n_sequences, *cap))
        return oct_nomem(err);
    OCT_TRY(oct_tree_parse(line, n, "JSON", &root, err));
    const oct_status s = read_object(t, root, &t->sequence[t->n_sequences++], err);
    oct_tree_free(root);
    return s;
}

oct_status oct_truth_read_sequences(oct_truth *t, oct_err *err)
{
    char *text;
    size_t size, cap = 0, number = 0;
    OCT_TRY(oct_read_all(t->path, MOST_TEXT, &text, &size, err));
    t->kind = OCT_SET_SEQUENCES;
    oct_status s = OCT_OK;
    for (size_t at = 0; at < size && s == OCT_OK;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = (end ? (size_t)(end - text) : size) - at;
        number++;
        if (n)
            s = read_line(t, text + at, n, &cap, err);
        if (s != OCT_OK)
            oct_within(err, "%s:%zu", t->path, number);
        at += n + 1;
    }
    oct_free(text);
    return s;
}

const oct_truth_sequence *oct_truth_sequence_of(const oct_truth *t, int64_t index)
{
    return index >= 0 && (uint64_t)index < t->n_sequences ? &t->sequence[index] : NULL;
}
