/* The options of a command line: which there are, and which were given. */
#include "cli/cli_int.h"

#include <string.h>

bool oct_cli_is_positional(const oct_cli_live *l)
{
    return l->o.kind == OCT_CLI_POSITIONAL || l->o.kind == OCT_CLI_POSITIONALS;
}

bool oct_cli_is_option(const oct_cli_live *l)
{
    return l->o.kind >= OCT_CLI_FLAG && l->o.kind <= OCT_CLI_FLOAT;
}

bool oct_cli_takes_value(const oct_cli_live *l)
{
    return l->o.kind >= OCT_CLI_STR && l->o.kind <= OCT_CLI_FLOAT;
}

oct_cli_live *oct_cli_find(const oct_cli *cli, const char *name, size_t len)
{
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if ((oct_cli_is_option(l) || oct_cli_is_positional(l)) && strncmp(l->o.name, name, len) == 0 && !l->o.name[len])
            return &cli->live[i];
    }
    return NULL;
}

static void load_one(oct_cli *cli, const oct_cli_opt *o)
{
    oct_cli_live *l = &cli->live[cli->n_live++];
    *l = (oct_cli_live){ .o = *o };
    if (o->kind == OCT_CLI_FLAG)
        l->on_default = *(const bool *)o->var;
    else if (o->kind == OCT_CLI_ENUM || o->kind == OCT_CLI_ENUM_OR_FILE)
        l->text_default = *(const char *const *)o->var;
}

oct_status oct_cli_load(oct_cli *cli, const oct_cli_opt *opts, oct_err *err)
{
    const oct_cli_opt common[] = {
        OPT_GROUP("Common options"),
        { OCT_CLI_OUT, 0, "json", &cli->json, "FILE", "also write the result as JSON; - is standard output" },
        { OCT_CLI_INT, 0, "threads", &cli->threads, "N", "threads to use [default: one per processor]", 1, 1024 },
        { OCT_CLI_STR, 0, "isa", &cli->isa, "NAME", "use no newer instruction set than this; results do not change" },
        { OCT_CLI_FLAG, 0, "progress", &cli->show_progress, NULL, "show progress [default: on a terminal]" },
        { OCT_CLI_FLAG, 'q', "quiet", &cli->quiet, NULL, "print results, warnings and errors only" },
        { OCT_CLI_COUNT, 'v', "verbose", &cli->verbose, NULL, "say more; may be repeated" },
        OPT_CONFLICT("quiet", "verbose"),
        { OCT_CLI_ACTION, 'h', "help", &cli->help, NULL, "print the options used most, or those of a topic" },
        { OCT_CLI_ACTION, 0, "help-all", &cli->help_all, NULL, "print all options; on a terminal the topics" },
        { OCT_CLI_ENUM, 0, "completion", &cli->completion, "SHELL",
          "print the script that completes command lines in a shell", 0, 0, 0, 0, oct_cli_shell },
        { OCT_CLI_ACTION, 0, "version", &cli->version, NULL,
          "print the version; with --verbose also whether AMX is used, and why not" },
        { OCT_CLI_ACTION, 0, "help-man", &cli->help_man, NULL, NULL },
    };
    size_t n = 0;
    for (const oct_cli_opt *o = opts; o->kind != OCT_CLI_END; o++)
        n += o->kind == OCT_CLI_COMMON ? OCT_COUNT(common) : 1;
    cli->live = oct_arena_calloc(cli->arena, n + 1, sizeof *cli->live);
    cli->n_live = 0;
    if (!cli->live)
        return oct_nomem(err);
    cli->show_progress = true;
    for (const oct_cli_opt *o = opts; o->kind != OCT_CLI_END; o++) {
        if (o->kind != OCT_CLI_COMMON) {
            load_one(cli, o);
            continue;
        }
        for (size_t k = 0; k < OCT_COUNT(common); k++)
            load_one(cli, &common[k]);
    }
    return OCT_OK;
}

bool oct_cli_given(const oct_cli *cli, const char *name)
{
    const oct_cli_live *l = oct_cli_find(cli, name, strlen(name));
    return l && l->times > 0;
}
