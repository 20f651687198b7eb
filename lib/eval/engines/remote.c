/* Our side of the protocol of docs/runner.md. */
#include "eval/engines/remote.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "data/arrays/npy.h"
#include "data/readers/shell.h"
#include "eval/engines/kept_command.h"
#include "runtime/model_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, LINE = 8192, NPY_START = 12, MOST_ARRAYS = 65535, AT_FIRST = 1 << 20 };
static const int64_t MOST_BYTES = (int64_t)4 << 30; /* limit for one array */

typedef struct result {
    oct_operand t;  /* its data are owned, or those of `texts` */
    void *data;     /* as it came; owned */
    size_t room;    /* the capacity of data, in bytes */
    oct_str *texts; /* [count], owned: of strings */
    bool seen;      /* this answer contains it */
} result;

struct oct_remote {
    oct_arena *arena;
    const oct_remote_opts *o;
    const oct_graph *g;
    oct_kept_command *kept;
    char *name;
    oct_model_inputs in;
    result *out; /* [g->n_output] */
    oct_interned *texts;
    bool failed; /* do not wait for its end */
    char line[LINE];
};

/* ---- its messages ---- */

/* The words after the first word of a line, if that is `word`. */
static const char *behind(const char *line, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Reads a line that begins with `word`; *rest is what follows. A line "error TEXT" reports an error of the command. */
static oct_status expect(oct_remote *r, const char *word, const char *form, const char **rest, oct_err *err)
{
    OCT_TRY(oct_kept_line(r->kept, r->line, sizeof r->line, err));
    if ((*rest = behind(r->line, word)))
        return OCT_OK;
    const char *said = behind(r->line, "error");
    if (said)
        return oct_fail(err, OCT_EIO, "%s: the command said: %s", r->o->command, said);
    oct_fail(err, OCT_EMALFORMED, "%s: the command wrote '%.200s' where '%s' is expected", r->o->command, r->line,
             form);
    oct_hint(err, "docs/runner.md says what the command must write; nothing else may go to its standard output");
    return OCT_EMALFORMED;
}

static oct_status malformed(const oct_remote *r, oct_err *err)
{
    return oct_fail(err, OCT_EMALFORMED, "%s: the command wrote '%.200s', which is not what docs/runner.md describes",
                    r->o->command, r->line);
}

/* Reads an integer of at most `most` at *p, and moves *p behind it. */
static bool number(const char **p, int64_t most, int64_t *v)
{
    if (**p < '0' || **p > '9')
        return false;
    for (*v = 0; **p >= '0' && **p <= '9'; ++*p)
        if ((*v = *v * 10 + (**p - '0')) > most)
            return false;
    return true;
}

static oct_status greet(oct_remote *r, oct_err *err)
{
    const char *rest;
    int64_t version;
    char hello[64];
    const int n = snprintf(hello, sizeof hello, "hello %d %d\n", VERSION, r->o->threads);
    OCT_TRY(oct_kept_write(r->kept, hello, (size_t)n, err));
    OCT_TRY(expect(r, "runner", "runner 1 NAME VERSION", &rest, err));
    if (!number(&rest, INT32_MAX, &version) || *rest != ' ' || !rest[1] || rest[1] == ' ')
        return malformed(r, err);
    if (version != VERSION)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s: the command speaks version %lld of the protocol, and this is %d",
                        r->o->command, (long long)version, VERSION);
    oct_buf clean = OCT_BUF_INIT;
    oct_text_clean(&clean, rest + 1, false);
    r->name = clean.failed ? NULL : oct_arena_strndup(r->arena, oct_buf_str(&clean), clean.len < 100 ? clean.len : 100);
    oct_buf_free(&clean);
    return r->name ? OCT_OK : oct_nomem(err);
}

/* ---- sending arrays ---- */

static oct_status check_name(const oct_remote *r, const char *name, oct_err *err)
{
    if (!strchr(name, '\n') && strlen(name) < LINE / 2)
        return OCT_OK;
    return oct_fail(err, OCT_EUNSUPPORTED, "%s: the name '%.60s' cannot be passed to a command", r->o->command, name);
}

static oct_status send_texts(oct_remote *r, const char *name, const oct_str *text, const oct_array *a, oct_err *err)
{
    oct_buf file = OCT_BUF_INIT, line = OCT_BUF_INIT;
    oct_status s = oct_npy_put_texts(&file, text, oct_array_count(a), a->rank, a->dims) ? OCT_OK : oct_nomem(err);
    oct_buf_printf(&line, "array %zu %s\n", file.len, name);
    if (s == OCT_OK)
        s = line.failed ? oct_nomem(err) : oct_kept_write(r->kept, line.data, line.len, err);
    if (s == OCT_OK)
        s = oct_kept_write(r->kept, file.data, file.len, err);
    oct_buf_free(&line);
    oct_buf_free(&file);
    return s;
}

static oct_status send_input(oct_remote *r, size_t i, const oct_array *a, oct_err *err)
{
    const oct_value *v = &r->g->value[r->g->input[i]];
    const oct_dtype type = v->dtype == OCT_UNDEFINED ? a->dtype : v->dtype;
    size_t bytes;
    oct_buf head = OCT_BUF_INIT, line = OCT_BUF_INIT;
    oct_status s = OCT_OK;
    if (v->kind == OCT_VALUE_TENSOR && type == OCT_STRING)
        return send_texts(r, v->name, r->in.data[i], a, err);
    if (v->kind != OCT_VALUE_TENSOR || !oct_npy_header(&head, type, a->rank, a->dims, 0) ||
        !oct_dtype_bytes(type, oct_array_count(a), &bytes))
        s = head.failed
                ? oct_nomem(err)
                : oct_fail(err, OCT_EUNSUPPORTED, "%s: input '%s' has a type that cannot be passed to a command",
                           r->o->command, v->name);
    if (s == OCT_OK) {
        oct_buf_printf(&line, "array %zu %s\n", head.len + bytes, v->name);
        oct_buf_add(&line, head.data, head.len);
        s = line.failed ? oct_nomem(err) : oct_kept_write(r->kept, line.data, line.len, err);
    }
    if (s == OCT_OK)
        s = oct_kept_write(r->kept, r->in.data[i], bytes, err);
    oct_buf_free(&head);
    oct_buf_free(&line);
    return s;
}

/* ---- receiving arrays ---- */

static result *find(oct_remote *r, const char *name)
{
    for (size_t i = 0; i < r->g->n_output; i++)
        if (strcmp(r->g->value[r->g->output[i]].name, name) == 0)
            return &r->out[i];
    return NULL;
}

/* Reads the head of an .npy that has `bytes` in all, and checks it. */
static oct_status read_head(oct_remote *r, const char *name, size_t bytes, oct_npy *head, oct_err *err)
{
    uint8_t start[NPY_START];
    if (bytes < NPY_START)
        return oct_fail(err, OCT_EMALFORMED, "%s: output '%s' is no .npy", r->o->command, name);
    OCT_TRY(oct_kept_read(r->kept, start, NPY_START, err));
    const size_t size = oct_npy_header_size(start, NPY_START);
    if (size < NPY_START || size > bytes)
        return oct_fail(err, OCT_EMALFORMED, "%s: output '%s' is no .npy", r->o->command, name);
    uint8_t *all = oct_alloc(size);
    if (!all)
        return oct_nomem(err);
    memcpy(all, start, NPY_START);
    oct_status s = oct_kept_read(r->kept, all + NPY_START, size - NPY_START, err);
    if (s == OCT_OK && (s = oct_npy_parse_any(all, size, head, err)) != OCT_OK)
        oct_within(err, "%s: output '%s'", r->o->command, name);
    oct_free(all);
    if (s != OCT_OK)
        return s;
    if (head->fortran && head->rank > 1)
        return oct_fail(err, OCT_EMALFORMED, "%s: output '%s' is in Fortran order", r->o->command, name);
    if (head->bytes != bytes - size)
        return oct_fail(err, OCT_EMALFORMED, "%s: output '%s' has %zu bytes, and its head says %zu", r->o->command,
                        name, bytes - size, head->bytes);
    return OCT_OK;
}

/* Skips an array: a runtime may return additional outputs, or use other names for them. */
static oct_status pass_over(oct_remote *r, int64_t bytes, oct_err *err)
{
    uint8_t part[4096];
    for (; bytes > 0; bytes -= (int64_t)sizeof part)
        OCT_TRY(oct_kept_read(r->kept, part, bytes < (int64_t)sizeof part ? (size_t)bytes : sizeof part, err));
    return OCT_OK;
}

/* Memory grows with the data that arrive, not with the size that is announced. */
static oct_status read_data(oct_remote *r, result *x, size_t bytes, oct_err *err)
{
    for (size_t at = 0; at < bytes || !x->data;) {
        const size_t want = bytes < AT_FIRST || bytes / 2 < at ? bytes : at < AT_FIRST ? AT_FIRST : 2 * at;
        if (want > x->room || !x->data) {
            void *more = oct_realloc(x->data, x->room, want ? want : 1);
            if (!more)
                return oct_nomem(err);
            x->data = more;
            x->room = want;
        }
        const size_t to = x->room < bytes ? x->room : bytes;
        OCT_TRY(oct_kept_read(r->kept, (char *)x->data + at, to - at, err));
        at = to;
    }
    return OCT_OK;
}

/* The texts of an array of strings. */
static oct_status read_texts(oct_remote *r, result *x, const oct_npy *head, oct_err *err)
{
    size_t bytes;
    if (!oct_mul_size((size_t)head->count + 1, sizeof *x->texts, &bytes))
        return oct_nomem(err);
    oct_free(x->texts);
    if (!(x->texts = oct_alloc(bytes)))
        return oct_nomem(err);
    if (!r->texts)
        OCT_TRY(oct_interned_create(&r->texts, err));
    return oct_npy_texts(head, x->data, head->count, r->texts, x->texts, err);
}

static oct_status read_output(oct_remote *r, oct_err *err)
{
    const char *rest;
    int64_t bytes;
    oct_npy head;
    OCT_TRY(expect(r, "array", "array BYTES NAME", &rest, err));
    if (!number(&rest, MOST_BYTES, &bytes) || *rest != ' ')
        return malformed(r, err);
    result *x = find(r, rest + 1);
    if (!x)
        return pass_over(r, bytes, err);
    if (x->seen)
        return oct_fail(err, OCT_EMALFORMED, "%s: the command gave output '%s' twice", r->o->command, rest + 1);
    const char *name = r->g->value[r->g->output[x - r->out]].name;
    OCT_TRY(read_head(r, name, (size_t)bytes, &head, err));
    OCT_TRY(read_data(r, x, head.bytes, err));
    const bool texts = head.dtype == OCT_STRING;
    if (texts)
        OCT_TRY_WITHIN(read_texts(r, x, &head, err), err, "%s: output '%s'", r->o->command, name);
    x->t = (oct_operand){ .dtype = head.dtype,
                          .rank = head.rank,
                          .count = head.count,
                          .data = texts ? (void *)x->texts : x->data,
                          .value = -1 };
    memcpy(x->t.dims, head.dims, (size_t)head.rank * sizeof head.dims[0]);
    x->seen = true;
    return OCT_OK;
}

/* Reads "done SECONDS COUNT" and checks it: a run takes some time, and not longer than the answer. */
static oct_status read_done(oct_remote *r, double began, double *seconds, int64_t *count, oct_err *err)
{
    const char *rest;
    char *end;
    OCT_TRY(expect(r, "done", "done SECONDS COUNT", &rest, err));
    *seconds = strtod(rest, &end);
    const char *at = end + 1;
    if (end == rest || *end != ' ' || !number(&at, MOST_ARRAYS, count) || *at || !isfinite(*seconds))
        return malformed(r, err);
    const double wall = oct_now() - began;
    if (*seconds > 0 && *seconds <= wall * 1.01 + 1e-3)
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "%s: the command says that a run took %g s, and its answer came after %g s",
                    r->o->command, *seconds, wall);
}

static oct_status run(oct_remote *r, const oct_array *arrays, double *seconds, oct_err *err)
{
    char line[64];
    int64_t count;
    const double began = oct_now();
    OCT_TRY(oct_model_inputs_convert(&r->in, arrays, err));
    const int n = snprintf(line, sizeof line, "run %zu\n", r->in.n);
    OCT_TRY(oct_kept_write(r->kept, line, (size_t)n, err));
    for (size_t i = 0; i < r->in.n; i++)
        OCT_TRY(send_input(r, i, &arrays[r->in.from[i]], err));
    OCT_TRY(read_done(r, began, seconds, &count, err));
    for (size_t i = 0; i < r->g->n_output; i++)
        r->out[i].seen = false;
    for (int64_t i = 0; i < count; i++)
        OCT_TRY(read_output(r, err));
    for (size_t i = 0; i < r->g->n_output; i++)
        if (!r->out[i].seen)
            return oct_fail(err, OCT_EMALFORMED, "%s: the command gave no output '%s'", r->o->command,
                            r->g->value[r->g->output[i]].name);
    return OCT_OK;
}

oct_status oct_remote_run(oct_remote *r, const oct_array *arrays, double *seconds, oct_err *err)
{
    oct_kept_turn(r->kept);
    const oct_status s = run(r, arrays, seconds, err);
    r->failed |= s != OCT_OK;
    return s;
}

const oct_operand *oct_remote_output(const oct_remote *r, size_t i)
{
    return &r->out[i].t;
}

/* ---- start and end ---- */

static oct_status check_names(const oct_remote *r, oct_err *err)
{
    for (size_t i = 0; i < r->g->n_input; i++)
        OCT_TRY(check_name(r, r->g->value[r->g->input[i]].name, err));
    for (size_t i = 0; i < r->g->n_output; i++)
        OCT_TRY(check_name(r, r->g->value[r->g->output[i]].name, err));
    return OCT_OK;
}

static oct_status set_up(oct_remote *r, const char *path, const oct_input_desc *feed, size_t n_feed, oct_err *err)
{
    OCT_TRY(oct_model_inputs_match(&r->in, r->g, feed, n_feed, r->arena, err));
    if (!(r->out = oct_arena_calloc(r->arena, r->g->n_output + 1, sizeof *r->out)))
        return oct_nomem(err);
    OCT_TRY(check_names(r, err));
    oct_buf line = OCT_BUF_INIT;
    oct_buf_puts(&line, r->o->command);
    oct_shell_word(&line, path);
    const oct_status s =
        line.failed ? oct_nomem(err) : oct_kept_start(oct_buf_str(&line), r->o->command, r->o->timeout, &r->kept, err);
    oct_buf_free(&line);
    OCT_TRY(s);
    oct_kept_turn(r->kept);
    return greet(r, err);
}

oct_status oct_remote_start(const oct_remote_opts *o, const char *path, const oct_graph *g, const oct_input_desc *feed,
                            size_t n_feed, oct_remote **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_remote *r = a ? oct_arena_calloc(a, 1, sizeof *r) : NULL;
    if (!r) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    *r = (oct_remote){ .arena = a, .o = o, .g = g };
    const oct_status s = set_up(r, path, feed, n_feed, err);
    r->failed = s != OCT_OK;
    if (s != OCT_OK)
        oct_remote_stop(r);
    *out = s == OCT_OK ? r : NULL;
    return s;
}

const char *oct_remote_name(const oct_remote *r)
{
    return r->name;
}

void oct_remote_stop(oct_remote *r)
{
    oct_err ignored = OCT_ERR_INIT;
    if (!r)
        return;
    if (r->kept && !r->failed) {
        oct_kept_turn(r->kept);
        r->failed = oct_kept_write(r->kept, "end\n", 4, &ignored) != OCT_OK;
    }
    oct_kept_stop(r->kept, !r->failed);
    for (size_t i = 0; r->out && i < r->g->n_output; i++) {
        oct_free(r->out[i].data);
        oct_free(r->out[i].texts);
    }
    oct_interned_destroy(r->texts);
    oct_model_inputs_free(&r->in);
    oct_arena_destroy(r->arena);
}
