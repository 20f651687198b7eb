#define _XOPEN_SOURCE 700
/* What the tools share: start and end, models, outputs. */
#include "common/common.h"

#include "kernels/cpu.h"
#include "passes/pass.h"
#include "quant/convert/convert.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const oct_cli_host *host; /* the host of the current run, or NULL */

void tool_init(oct_cli *cli, const oct_cli_host *h)
{
    cli->host = host = h;
    if (!h)
        oct_io_start();
    cli->isa_text = oct_isa_name(oct_isa_detect());
    static char note[80];
    snprintf(note, sizeof note, "amx: %s", oct_isa_no_amx() ? oct_isa_no_amx() : "used");
    cli->isa_note = note;
    cli->isa_names = oct_isa_names();
    cli->is_data = oct_looks_like_data;
}

static void say_leftover(void *cli, const char *path)
{
    oct_cli_warn(cli, "%s was left by a run that was killed; it can be removed", path);
}

oct_status tool_start(oct_cli *cli, oct_err *err)
{
    if (!cli->host)
        oct_io_guard(cli->name);
    oct_out_on_leftover(say_leftover, cli);
    const char *isa = cli->isa ? cli->isa : getenv("OCT_ISA");
    if (!isa)
        return OCT_OK;
    oct_status st = oct_isa_limit(isa, err);
    if (!cli->isa)
        oct_within(err, "OCT_ISA");
    return st;
}

int tool_finish(oct_cli *cli, oct_status s, oct_err *err)
{
    oct_out_on_leftover(NULL, NULL);
    oct_out_unclaim();
    host = NULL;
    return oct_cli_finish(cli, s, err);
}

/* A folder, or a file whose name is that of samples. Models may have the extension .pb, like tensors. */
static bool is_data(const char *path)
{
    const size_t n = strlen(path);
    const char *dot = strrchr(tool_base(path), '.');
    if (dot && strcasecmp(dot, ".onnx") == 0)
        return false;
    return oct_path_is_dir(path) || (n && path[n - 1] == '/') ||
           (dot && oct_looks_like_data(path) && strcasecmp(dot, ".pb") != 0);
}

oct_status tool_load(oct_cli *cli, const char *path, oct_model **m, oct_err *err)
{
    if (is_data(path)) {
        oct_fail(err, OCT_EUSAGE, "'%s' is not an ONNX model", path);
        oct_cli_pattern_hint(cli, "data", path, err);
        return OCT_EUSAGE;
    }
    const char *newer;
    oct_status s = oct_model_load(path, m, err);
    if (s == OCT_EMALFORMED || s == OCT_EIO)
        oct_cli_pattern_hint(cli, "data", path, err);
    OCT_TRY(s);
    s = oct_check_operators((*m)->graph, &newer, err);
    if (s != OCT_OK) {
        oct_within(err, "%s", path);
        oct_model_free(*m);
        *m = NULL;
    } else if (newer) {
        oct_cli_warn(cli, "%s is of opset %lld, newer than what is known here: '%s' is not checked", path,
                     (long long)oct_graph_opset((*m)->graph, ""), newer);
    }
    return s;
}

const char *tool_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void tool_warn_incomplete(oct_cli *cli, const char *path, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT;
    if (oct_calib_missing(c, &missing))
        oct_cli_warn(cli, "%s is made from part of its samples: it lacks %s", path, oct_buf_str(&missing));
    oct_buf_free(&missing);
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

oct_status tool_check_output(const char *out, const char *const *in, size_t n, oct_err *err)
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

oct_status tool_check_model_output(const char *out, const oct_model *m, oct_err *err)
{
    for (size_t i = 0; i < m->n_maps; i++) {
        const char *path = m->maps[i].path;
        OCT_TRY(tool_check_output(out, &path, 1, err));
    }
    return OCT_OK;
}

void tool_say_progress(void *cli, const char *what, int64_t done, int64_t total)
{
    oct_progress_report(&((oct_cli *)cli)->progress, what, done, total);
}

void tool_say_note(void *cli, int level, const char *text)
{
    if (level == OCT_NOTE_WARNING)
        oct_cli_warn(cli, "%s", text);
    else
        oct_cli_note(cli, level, "%s", text);
}

oct_status tool_write_text(const char *path, const oct_buf *text, oct_err *err)
{
    oct_out o;
    if (text->failed)
        return oct_nomem(err);
    if (host && strcmp(path, "-") == 0) {
        oct_buf_add(host->documents, oct_buf_str(text), text->len);
        return host->documents->failed ? oct_nomem(err) : OCT_OK;
    }
    OCT_TRY(oct_out_open(&o, path, err));
    oct_out_write(&o, oct_buf_str(text), text->len);
    return oct_out_commit(&o, err);
}

void tool_json_open(oct_json *j, const char *schema)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "schema", schema);
    oct_json_str(j, "version", OCT_VERSION);
}

oct_status tool_write_json(const char *path, oct_json *j, oct_err *err)
{
    oct_json_close(j);
    const oct_status st = tool_write_text(path, j->out, err);
    oct_buf_free(j->out);
    return st;
}

oct_status tool_write_report(const char *path, void (*print)(const oct_item *report, oct_buf *out),
                             const oct_item *report, oct_err *err)
{
    if (!path)
        return OCT_OK;
    oct_buf b = OCT_BUF_INIT;
    print(report, &b);
    oct_status s = tool_write_text(path, &b, err);
    oct_buf_free(&b);
    return s;
}

void tool_quote(oct_buf *b, const char *arg)
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

void tool_command_line(oct_buf *b, const oct_cli *cli, int argc, char *const *argv)
{
    oct_buf_puts(b, cli->name);
    for (int i = 1; i < argc; i++) {
        oct_buf_puts(b, argv[i][0] == '-' && argv[i][1] ? " \\\n    " : " ");
        tool_quote(b, argv[i]);
    }
}
