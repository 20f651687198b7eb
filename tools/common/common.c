/* What the tools share: start, models, outputs. */
#include "common/common.h"

#include "kernels/cpu.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tool_init(oct_cli *cli)
{
    oct_io_start();
    cli->isa_text = oct_isa_name(oct_isa_detect());
    cli->isa_names = oct_isa_names();
}

oct_status tool_start(oct_cli *cli, oct_err *err)
{
    oct_io_guard(cli->name);
    const char *isa = cli->isa ? cli->isa : getenv("OCT_ISA");
    if (!isa)
        return OCT_OK;
    oct_status st = oct_isa_limit(isa, err);
    if (!cli->isa)
        oct_within(err, "OCT_ISA");
    return st;
}

oct_status tool_load(const char *path, oct_model **m, oct_err *err)
{
    oct_status s = oct_model_load(path, m, err);
    if (s == OCT_EMALFORMED || s == OCT_EIO)
        oct_cli_pattern_hint("data", path, err);
    return s;
}

const char *tool_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint64_t tool_model_bytes(const oct_model *m)
{
    uint64_t bytes = m->size;
    for (size_t i = m->from_file ? 1 : 0; i < m->n_maps; i++)
        bytes += m->maps[i].size;
    return bytes;
}

/* Whether `out` is the file `in` names, or one that the pattern `in` would read. */
static bool reads(const char *in, const char *out)
{
    if (oct_same_file(in, out))
        return true;
    if (strpbrk(in, "*?[") && oct_path_exists(out) && fnmatch(in, out, FNM_PATHNAME) == 0)
        return true;
    /* A file of a folder of samples; models there are not samples. */
    const char *dot = strrchr(tool_base(out), '.');
    if (!oct_path_is_dir(in) || !oct_path_exists(out) || (dot && strcmp(dot, ".onnx") == 0))
        return false;
    char folder[4096];
    size_t n = (size_t)(tool_base(out) - out);
    if (n >= sizeof folder)
        return false;
    memcpy(folder, n ? out : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return oct_same_file(folder, in);
}

static oct_status check_folder(const char *out, oct_err *err)
{
    char folder[4096];
    size_t n = (size_t)(tool_base(out) - out);
    if (oct_path_is_dir(out))
        return oct_fail(err, OCT_EIO, "%s: %s", out, strerror(EISDIR));
    if (n >= sizeof folder)
        return oct_fail(err, OCT_EIO, "%.200s...: %s", out, strerror(ENAMETOOLONG));
    memcpy(folder, n ? out : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    if (access(folder, W_OK) != 0)
        return oct_fail(err, OCT_EIO, "%s: cannot write to its folder: %s", out, strerror(errno));
    return OCT_OK;
}

oct_status tool_check_output(const char *out, const char *const *in, size_t n, oct_err *err)
{
    if (!out || strcmp(out, "-") == 0)
        return OCT_OK;
    for (size_t i = 0; i < n; i++)
        if (in[i] && reads(in[i], out)) {
            oct_fail(err, OCT_EUSAGE, "%s: the output is an input (%s); nothing was written", out, in[i]);
            oct_hint(err, "give another name with -o");
            return OCT_EUSAGE;
        }
    return check_folder(out, err);
}

oct_status tool_check_model_output(const char *out, const oct_model *m, oct_err *err)
{
    for (size_t i = 0; i < m->n_maps; i++) {
        const char *path = m->maps[i].path;
        OCT_TRY(tool_check_output(out, &path, 1, err));
    }
    return OCT_OK;
}

oct_status tool_write_text(const char *path, const oct_buf *text, oct_err *err)
{
    oct_out o;
    if (text->failed)
        return oct_nomem(err);
    OCT_TRY(oct_out_open(&o, path, err));
    oct_out_write(&o, oct_buf_str(text), text->len);
    return oct_out_commit(&o, err);
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
