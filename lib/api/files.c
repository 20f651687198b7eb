#define _XOPEN_SOURCE 700
/* The model that is read, and the outputs of a call. */
#include "api/files.h"

#include "onnx/model.h"
#include "passes/pass.h"
#include "tflite/read/tflite_read.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void oct_say(oct_voice v, int level, const char *fmt, ...)
{
    va_list ap;
    oct_arena *a = v.note ? oct_arena_create() : NULL;
    va_start(ap, fmt);
    const char *text = a ? oct_arena_vprintf(a, fmt, ap) : NULL;
    va_end(ap);
    if (text)
        v.note(v.arg, level, text);
    oct_arena_destroy(a);
}

oct_status oct_load_any(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err)
{
    static const oct_model_format tflite = { oct_tflite_is, oct_tflite_read };
    oct_buf notes = OCT_BUF_INIT;
    const oct_status s = data ? oct_model_load_mem_as(data, size, path, &tflite, &notes, m, err)
                              : oct_model_load_as(path, &tflite, &notes, m, err);
    char *save = NULL;
    for (char *line = s == OCT_OK && notes.len ? strtok_r(notes.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        oct_say(v, 0, "%s: %s", path, line);
    oct_buf_free(&notes);
    return s;
}

oct_status oct_load_checked(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err)
{
    const char *newer;
    OCT_TRY(oct_load_any(v, path, data, size, m, err));
    const oct_status s = oct_check_operators((*m)->graph, &newer, err);
    if (s != OCT_OK) {
        oct_within(err, "%s", path);
        oct_model_free(*m);
        *m = NULL;
    } else if (newer) {
        oct_say(v, OCT_NOTE_WARNING, "%s is of opset %lld, newer than what is known here: '%s' is not checked", path,
                (long long)oct_graph_opset((*m)->graph, ""), newer);
    }
    return s;
}

oct_status oct_load(oct_voice v, const char *path, const void *data, size_t size, oct_model **m, oct_err *err)
{
    return v.load ? v.load(v.arg, path, m, err) : oct_load_checked(v, path, data, size, m, err);
}

size_t oct_model_stem(const char *path)
{
    static const char *const ends[] = { ".onnx", ".tflite" };
    const size_t n = strlen(path);
    for (size_t i = 0; i < OCT_COUNT(ends); i++)
        if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
            return n - strlen(ends[i]);
    return n;
}

static const char *folder_of(const oct_place *p, char folder[PATH_MAX])
{
    memcpy(folder, p->folder ? p->path : ".", p->folder ? p->folder : 1);
    folder[p->folder ? p->folder : 1] = '\0';
    return folder;
}

/* Whether `out` is the file that `in` names, or one that the pattern or folder `in` would read. */
static bool reads(const char *in, const char *out, const oct_place *p)
{
    char folder[PATH_MAX];
    if (oct_same_file(in, out))
        return true;
    if (p->stream || !oct_path_exists(out))
        return false;
    if (strpbrk(in, "*?[") && (fnmatch(in, out, FNM_PATHNAME) == 0 || fnmatch(in, p->path, FNM_PATHNAME) == 0))
        return true;
    /* A file in a folder of samples. Models in such a folder are not samples. */
    const char *dot = strrchr(p->path + p->folder, '.');
    return oct_path_is_dir(in) && !(dot && strcmp(dot, ".onnx") == 0) && oct_same_file(folder_of(p, folder), in);
}

/* In such a folder only its owner can replace a file. */
static bool is_held(const char *folder, const char *path)
{
    struct stat f, st;
    const uid_t own = geteuid();
    return own != 0 && stat(folder, &f) == 0 && (f.st_mode & S_ISVTX) && f.st_uid != own && lstat(path, &st) == 0 &&
           st.st_uid != own;
}

static oct_status check_folder(const char *out, const oct_place *p, oct_err *err)
{
    char folder[PATH_MAX];
    if (access(folder_of(p, folder), W_OK) != 0)
        return oct_place_fail(p, out, err);
    if (is_held(folder, p->path))
        return oct_fail(err, OCT_EIO, "%s: it belongs to another user, and nobody else may replace it in its folder",
                        out);
    return OCT_OK;
}

oct_status oct_check_output(const char *out, const char *const *in, size_t n, oct_err *err)
{
    oct_place p;
    if (!out)
        return OCT_OK;
    OCT_TRY(oct_place_find(&p, out, err));
    const char *to = strcmp(out, "-") == 0 ? "/dev/stdout" : out;
    for (size_t i = 0; i < n; i++)
        if (in[i] && reads(in[i], to, &p)) {
            oct_fail(err, OCT_EUSAGE, "%s: the output is an input (%s); nothing was written", out, in[i]);
            oct_hint(err, "give another name with -o");
            return OCT_EUSAGE;
        }
    oct_out_claim(to);
    return p.stream ? OCT_OK : check_folder(out, &p, err);
}

oct_status oct_check_model_output(const char *out, const oct_model *m, oct_err *err)
{
    for (size_t i = 0; i < m->n_maps; i++) {
        const char *path = m->maps[i].path;
        OCT_TRY(oct_check_output(out, &path, 1, err));
    }
    return OCT_OK;
}

oct_status oct_write_text(const char *path, const oct_buf *text, oct_err *err)
{
    oct_out o;
    if (text->failed)
        return oct_nomem(err);
    OCT_TRY(oct_out_open(&o, path, err));
    oct_out_write(&o, oct_buf_str(text), text->len);
    return oct_out_commit(&o, err);
}

void oct_quote(oct_buf *b, const char *arg)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
    if (*arg && strspn(arg, plain) == strlen(arg)) {
        oct_buf_puts(b, arg);
        return;
    }
    oct_buf_puts(b, "'");
    for (; *arg; arg++)
        if (*arg == '\'')
            oct_buf_puts(b, "'\\''");
        else
            oct_buf_add(b, arg, 1);
    oct_buf_puts(b, "'");
}
