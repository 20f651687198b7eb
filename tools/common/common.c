#define _XOPEN_SOURCE 700
/* What the tools share: start and end, models, outputs. */
#include "common/common.h"

#include "api/machine.h"
#include "api/choices.h"
#include "api/folder/folder_recipe.h"
#include "base/io.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void tool_init(oct_cli *cli)
{
    oct_io_start();
    cli->isa_text = oct_isa_name(oct_isa_detect());
    static char note[240];
    oct_machine_note(note, sizeof note);
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
    return oct_cli_finish(cli, s, err);
}

/* A folder, or a file whose name is that of samples. Models may have the extension .pb, like tensors. */
static bool is_data(const char *path)
{
    const size_t n = strlen(path);
    const char *dot = strrchr(oct_path_base(path), '.');
    if (dot && strcasecmp(dot, ".onnx") == 0)
        return false;
    return oct_path_is_dir(path) || (n && path[n - 1] == '/') ||
           (dot && oct_looks_like_data(path) && strcasecmp(dot, ".pb") != 0);
}

/* Loads a model; cli: oct_cli *. OCT_EUSAGE with a hint to --data: it is a folder, or its name is that of samples. */
static oct_status load(void *cli, const char *path, oct_model **m, oct_err *err)
{
    if (is_data(path)) {
        oct_fail(err, OCT_EUSAGE, "'%s' is not an ONNX model", path);
        oct_cli_pattern_hint(cli, "data", path, err);
        return OCT_EUSAGE;
    }
    const oct_status s = oct_load_checked(tool_voice(cli), path, NULL, 0, m, err);
    if (s == OCT_EMALFORMED || s == OCT_EIO)
        oct_cli_pattern_hint(cli, "data", path, err);
    return s;
}

static void say_progress(void *cli, const char *what, int64_t done, int64_t total)
{
    oct_progress_report(&((oct_cli *)cli)->progress, what, done, total);
}

static void say_note(void *cli, int level, const char *text)
{
    if (level == OCT_NOTE_WARNING)
        oct_cli_warn(cli, "%s", text);
    else
        oct_cli_note(cli, level, "%s", text);
}

octet_samples tool_samples(const oct_cli *cli, const tool_data *d)
{
    return (octet_samples){ .data = tool_texts(d->specs),
                            .preprocess = tool_texts(d->preprocess),
                            .samples = d->samples,
                            .seed = d->seed || oct_cli_given(cli, "seed") ? d->seed : -1,
                            .first = d->first,
                            .skip_bad = d->skip_bad,
                            .states = tool_texts(d->states),
                            .labels = d->labels,
                            .generate = d->generate };
}

const char *tool_recipe_name(size_t i, const char **summary)
{
    if (i > 0)
        return oct_folder_recipe_builtin(i - 1, summary);
    if (summary)
        *summary = "the first one that the folder fits";
    return "auto";
}

oct_voice tool_voice(oct_cli *cli)
{
    return (oct_voice){ say_note, say_progress, cli, load };
}

oct_status tool_write_report(const char *path, void (*print)(const oct_item *report, oct_buf *out),
                             const oct_item *report, oct_err *err)
{
    if (!report)
        return oct_nomem(err);
    if (!path)
        return OCT_OK;
    oct_buf b = OCT_BUF_INIT;
    print(report, &b);
    oct_status s = oct_write_text(path, &b, err);
    oct_buf_free(&b);
    return s;
}

void tool_command_line(oct_buf *b, const oct_cli *cli, int argc, char *const *argv)
{
    oct_buf_puts(b, cli->name);
    for (int i = 1; i < argc; i++) {
        oct_buf_puts(b, argv[i][0] == '-' && argv[i][1] ? " \\\n    " : " ");
        oct_quote(b, argv[i]);
    }
}
