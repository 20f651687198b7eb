/* Opens the truth about samples; pairs. */
#include "eval/sets/truth_int.h"

#include "base/io.h"
#include "data/arrays/map_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TEXT = 1 << 30 };

/* ---- pairs ---- */

static oct_status read_pairs(oct_truth *t, oct_csv *c, oct_err *err)
{
    const int score = oct_csv_column(c, "score"), a = oct_csv_column(c, "a"), b = oct_csv_column(c, "b");
    size_t cap = 0;
    t->kind = OCT_SET_PAIRS;
    t->consecutive = a < 0 || b < 0;
    for (;;) {
        oct_truth_pair p = { .a = 2 * (int64_t)t->n_pairs, .b = 2 * (int64_t)t->n_pairs + 1 };
        bool end;
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            return OCT_OK;
        OCT_TRY(oct_csv_number(c, score, "score", &p.score, err));
        if (!t->consecutive) {
            OCT_TRY(oct_csv_whole(c, a, "sample", MOST_PLACE, &p.a, err));
            OCT_TRY(oct_csv_whole(c, b, "sample", MOST_PLACE, &p.b, err));
        }
        if (!OCT_GROW(t->arena, t->pair, t->n_pairs, cap))
            return oct_nomem(err);
        t->pair[t->n_pairs++] = p;
    }
}

/* Scores of consecutive samples from an array. */
static oct_status pairs_of_array(oct_truth *t, const oct_array *a, oct_err *err)
{
    const size_t n = (size_t)oct_array_count(a), size = (size_t)oct_dtype_bits(a->dtype) / 8;
    t->kind = OCT_SET_PAIRS;
    t->consecutive = true;
    if (!(t->pair = oct_arena_calloc(t->arena, n + 1, sizeof *t->pair)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        oct_truth_pair *p = &t->pair[i];
        *p = (oct_truth_pair){ .a = 2 * (int64_t)i, .b = 2 * (int64_t)i + 1 };
        OCT_TRY(oct_array_convert(a->dtype, (const char *)a->data + i * size, OCT_F64, &p->score, 1, err));
        if (!isfinite(p->score))
            return oct_fail(err, OCT_EMALFORMED, "[%zu]: the score is not finite", i);
    }
    t->n_pairs = n;
    return OCT_OK;
}

const oct_truth_pair *oct_truth_pairs(const oct_truth *t, size_t *n)
{
    *n = t->n_pairs;
    return t->pair;
}

bool oct_truth_consecutive(const oct_truth *t)
{
    return t->consecutive;
}

/* ---- opening ---- */

static oct_status read_array(oct_truth *t, oct_err *err)
{
    oct_array a;
    char text[96];
    OCT_TRY(oct_npy_load(t->path, &a, err));
    if (a.rank == 3) {
        t->kind = OCT_SET_MAPS;
        t->maps = a;
        return OCT_OK;
    }
    oct_status s = OCT_OK;
    if (a.rank == 1)
        s = pairs_of_array(t, &a, err);
    else if (a.rank == 2)
        s = oct_truth_sequences_of_array(t, &a, err);
    else
        s = oct_fail(
            err, OCT_EMALFORMED,
            "an array of shape %s is neither scores of pairs [P] nor labels of places [N,L] nor maps of classes [N,H,W]",
            oct_dims_text(text, a.rank, a.dims));
    oct_array_free(&a);
    return s;
}

/* Scores that are stored with a model's inputs: the array of that name, read like samples. */
static oct_status take_scores(oct_truth *t, oct_source *src, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    size_t cap = 0;
    oct_status s;
    while ((s = oct_source_next(src, 1024, &b, err)) == OCT_OK && b.n)
        for (size_t i = 0; i < b.n && s == OCT_OK; i++) {
            const int64_t at = 2 * (int64_t)t->n_pairs;
            if (!OCT_GROW(t->arena, t->pair, t->n_pairs, cap))
                s = oct_nomem(err);
            else
                t->pair[t->n_pairs++] = (oct_truth_pair){ at, at + 1, ((const double *)b.tensors[0].data)[i] };
        }
    oct_batch_free(&b);
    return s;
}

static oct_status read_archive(oct_truth *t, oct_err *err)
{
    const int64_t any = -1;
    const oct_input_desc in = { .name = "scores", .dtype = OCT_F64, .rank = 1, .dims = &any };
    const oct_source_options o = { .specs = &t->path, .n_specs = 1, .inputs = &in, .n_inputs = 1, .threads = 1 };
    oct_source *src;
    t->kind = OCT_SET_PAIRS;
    t->consecutive = true;
    OCT_TRY(oct_source_open(&o, &src, err));
    const oct_status s = take_scores(t, src, err);
    oct_source_close(src);
    return s;
}

/* The header tells the kind. */
static oct_status read_rows(oct_truth *t, oct_csv *c, oct_err *err)
{
    if (oct_csv_column(c, "x1") >= 0)
        return oct_truth_read_boxes(t, c, err);
    if (oct_csv_column(c, "score") >= 0)
        return read_pairs(t, c, err);
    oct_csv_fault(c, err, "the header has neither x1 (boxes) nor score (pairs)");
    oct_hint(err, "boxes: file,class,x1,y1,x2,y2; pairs: score, or a,b,score; class numbers go to --labels");
    return OCT_EMALFORMED;
}

static oct_status read_csv(oct_truth *t, oct_err *err)
{
    oct_csv c;
    OCT_TRY(oct_csv_open(&c, t->path, t->arena, err));
    const oct_status s = read_rows(t, &c, err);
    oct_csv_close(&c);
    return s;
}

static oct_status read_json(oct_truth *t, oct_err *err)
{
    char *text;
    size_t size;
    OCT_TRY(oct_read_all(t->path, MOST_TEXT, &text, &size, err));
    const oct_status s = oct_truth_read_coco(t, text, size, err);
    oct_free(text);
    return s;
}

/* In a folder, text files are objects, and pictures and arrays are maps. */
static oct_status read_folder(oct_truth *t, oct_err *err)
{
    oct_names names;
    OCT_TRY(oct_list_dir(t->path, t->arena, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        if (oct_map_file_claims(names.v[i]))
            return oct_truth_read_maps(t, &names, err);
        if (oct_has_suffix(names.v[i], ".txt"))
            return oct_truth_read_yolo(t, &names, err);
    }
    return oct_fail(err, OCT_EMALFORMED, "%s: neither maps (.png, .npy) nor objects (.txt) are in the folder", t->path);
}

static oct_status read_any(oct_truth *t, oct_err *err)
{
    struct stat st;
    if (stat(t->path, &st) == 0 && S_ISDIR(st.st_mode))
        return read_folder(t, err);
    if (oct_has_suffix(t->path, ".json"))
        return read_json(t, err);
    if (oct_has_suffix(t->path, ".jsonl"))
        return oct_truth_read_sequences(t, err);
    if (oct_has_suffix(t->path, ".csv"))
        return read_csv(t, err);
    if (oct_has_suffix(t->path, ".npz"))
        return read_archive(t, err);
    if (oct_has_suffix(t->path, ".npy"))
        OCT_TRY_WITHIN(read_array(t, err), err, "%s", t->path);
    else
        return oct_fail(err, OCT_EUSAGE,
                        "%s: the truth about samples is read from .json, .jsonl, .csv, .npy, .npz or a folder",
                        t->path);
    return OCT_OK;
}

oct_status oct_truth_open(const char *path, int point_size, oct_truth **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_truth *t = a ? oct_arena_calloc(a, 1, sizeof *t) : NULL;
    if (!t || !(t->path = oct_arena_strdup(a, path))) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    t->arena = a;
    t->point_size = point_size;
    const oct_status s = read_any(t, err);
    if (s != OCT_OK) {
        oct_truth_close(t);
        return s;
    }
    *out = t;
    return OCT_OK;
}

void oct_truth_close(oct_truth *t)
{
    if (!t)
        return;
    oct_array_free(&t->maps);
    oct_arena_destroy(t->arena);
}

oct_set_kind oct_truth_kind(const oct_truth *t)
{
    return t->kind;
}

const char *oct_truth_path(const oct_truth *t)
{
    return t->path;
}
