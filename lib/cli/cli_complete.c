/* lib/cli: scripts by which bash, zsh and fish complete a command line, from the option tables (`--completion`). */
#include "cli/cli_int.h"

#include <string.h>

/* What follows an option. */
typedef enum wants { NOTHING, WORDS, FILES, TEXT } wants;

static wants what_follows(const oct_cli_live *l)
{
    switch (l->o.kind) {
    case OCT_CLI_ENUM:
    case OCT_CLI_ENUMS: return WORDS;
    case OCT_CLI_ENUM_OR_FILE: return WORDS;
    case OCT_CLI_FILE:
    case OCT_CLI_OUT: return FILES;
    case OCT_CLI_STR:
    case OCT_CLI_MULTI: return strcmp(l->o.arg, "FILE") == 0 || strcmp(l->o.arg, "SPEC") == 0 ? FILES : TEXT;
    default: return oct_cli_takes_value(l) ? TEXT : NOTHING;
    }
}

static bool offered(const oct_cli_live *l)
{
    return oct_cli_is_option(l) && l->o.help;
}

static void put_names(const oct_cli_live *l, oct_buf *b)
{
    const char *name, *summary;
    for (size_t i = 0; (name = l->o.names(i, &summary)); i++)
        oct_buf_printf(b, "%s%s", i ? " " : "", name);
}

static bool is_switched_off(const oct_cli_live *l)
{
    return l->o.kind == OCT_CLI_FLAG && l->on_default;
}

/* The name that is offered: that of the switch that changes something. */
static void put_option(const oct_cli_live *l, oct_buf *b)
{
    oct_buf_printf(b, "%s%s", is_switched_off(l) ? "no-" : "", l->o.name);
}

/* The first clause, without what a shell's quotes or a list of zsh would end at. */
static void put_text(const char *text, oct_buf *b)
{
    for (size_t n = strcspn(text, ";:["), i = 0; i < n; i++)
        if (!strchr("'\\[]$`\"", text[i]) && !(text[i] == ' ' && i + 1 == n))
            oct_buf_add(b, &text[i], 1);
}

static void put_summary(const oct_cli_live *l, oct_buf *b)
{
    oct_buf_puts(b, is_switched_off(l) ? "off, " : "");
    put_text(l->o.help, b);
}

/* Every table in turn: the tool's own (command NULL), then each command's. */
typedef void (*table_fn)(const oct_cli *cli, const oct_cli_command *command, oct_buf *b);

static oct_status each_table(oct_cli *cli, table_fn f, oct_buf *b, oct_err *err)
{
    OCT_TRY(oct_cli_load(cli, cli->opts, err));
    f(cli, NULL, b);
    for (size_t i = 0; i < cli->n_commands; i++) {
        OCT_TRY(oct_cli_load(cli, cli->commands[i].opts, err));
        f(cli, &cli->commands[i], b);
    }
    return OCT_OK;
}

/* ---- bash ---- */

/* What the word behind an option is. */
static void bash_after(const oct_cli_live *l, oct_buf *b)
{
    const wants w = what_follows(l);
    if (w == NOTHING)
        return;
    oct_buf_printf(b, "        --%s", l->o.name);
    if (l->o.letter)
        oct_buf_printf(b, "|-%c", l->o.letter);
    oct_buf_puts(b, ") ");
    if (w == WORDS) {
        oct_buf_puts(b, "names='");
        put_names(l, b);
        oct_buf_puts(b, "' ;;\n");
    } else {
        oct_buf_puts(b, w == FILES ? "files=1 ;;\n" : "return ;;\n");
    }
}

static void bash_table(const oct_cli *cli, const oct_cli_command *command, oct_buf *b)
{
    oct_buf_printf(b, "    %s)\n        words='", command ? command->name : "*");
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (!offered(l))
            continue;
        oct_buf_puts(b, "--");
        put_option(l, b);
        oct_buf_puts(b, " ");
    }
    oct_buf_puts(b, "'\n        case $prev in\n");
    for (size_t i = 0; i < cli->n_live; i++)
        if (offered(&cli->live[i]))
            bash_after(&cli->live[i], b);
    oct_buf_puts(b, "        esac ;;\n");
}

/* Commands come first: the tool's own table is the case '*'. */
static oct_status bash_tables(oct_cli *cli, oct_buf *b, oct_err *err)
{
    for (size_t i = 0; i < cli->n_commands; i++) {
        OCT_TRY(oct_cli_load(cli, cli->commands[i].opts, err));
        bash_table(cli, &cli->commands[i], b);
    }
    OCT_TRY(oct_cli_load(cli, cli->opts, err));
    bash_table(cli, NULL, b);
    return OCT_OK;
}

static oct_status bash(oct_cli *cli, oct_buf *b, oct_err *err)
{
    oct_buf_printf(b,
                   "# bash: source this file, or put it where bash-completion looks for it, as %s.bash\n"
                   "_%s() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words names files\n"
                   "    [ \"$cur\" = = ] && cur=\n"
                   "    [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                   "    COMPREPLY=()\n"
                   "    case ${COMP_WORDS[1]} in\n",
                   cli->name, cli->name);
    OCT_TRY(bash_tables(cli, b, err));
    oct_buf_puts(
        b,
        "    esac\n    if [ -n \"$names\" ]; then\n        COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))\n"
        "    elif [ -z \"$files\" ] && [ \"${cur#-}\" != \"$cur\" ]; then\n"
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    else\n        compopt -o filenames 2> /dev/null\n"
        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n");
    if (cli->n_commands) {
        oct_buf_puts(b, "        [ \"$COMP_CWORD\" != 1 ] || COMPREPLY+=($(compgen -W '");
        for (size_t i = 0; i < cli->n_commands; i++)
            oct_buf_printf(b, "%s%s", i ? " " : "", cli->commands[i].name);
        oct_buf_puts(b, "' -- \"$cur\"))\n");
    }
    oct_buf_printf(b, "    fi\n}\ncomplete -F _%s %s\n", cli->name, cli->name);
    return OCT_OK;
}

/* ---- zsh ---- */

/* letter: the short form's entry. */
static void zsh_option(const oct_cli_live *l, bool letter, oct_buf *b)
{
    const wants w = what_follows(l);
    const bool many = l->o.kind == OCT_CLI_MULTI || l->o.kind == OCT_CLI_COUNT;
    oct_buf_printf(b, "        '%s-", many ? "*" : "");
    if (letter) {
        oct_buf_printf(b, "%c%s[", l->o.letter, w == NOTHING ? "" : "+");
    } else {
        oct_buf_puts(b, "-");
        put_option(l, b);
        oct_buf_puts(b, w == NOTHING ? "[" : "=[");
    }
    put_summary(l, b);
    oct_buf_puts(b, w == NOTHING ? "]" : "]:value:");
    if (w == WORDS) {
        oct_buf_puts(b, "(");
        put_names(l, b);
        oct_buf_puts(b, ")");
    } else if (w == FILES) {
        oct_buf_puts(b, "_files");
    }
    oct_buf_puts(b, "' \\\n");
}

static void zsh_table(const oct_cli *cli, const oct_cli_command *command, oct_buf *b)
{
    oct_buf_printf(b, "_%s_%s() {\n    _arguments -s \\\n", cli->name, command ? command->name : "itself");
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (offered(l))
            zsh_option(l, false, b);
        if (offered(l) && l->o.letter)
            zsh_option(l, true, b);
    }
    if (!command && cli->n_commands) {
        oct_buf_puts(b, "        '1: :{ _alternative \"files:model:_files\" \"commands:command:(");
        for (size_t i = 0; i < cli->n_commands; i++)
            oct_buf_printf(b, "%s%s", i ? " " : "", cli->commands[i].name);
        oct_buf_puts(b, ")\" }' \\\n");
    }
    oct_buf_puts(b, "        '*:file:_files'\n}\n");
}

static oct_status zsh(oct_cli *cli, oct_buf *b, oct_err *err)
{
    oct_buf_printf(b, "#compdef %s\n# zsh: put this file into a folder of $fpath, as _%s\n", cli->name, cli->name);
    OCT_TRY(each_table(cli, zsh_table, b, err));
    for (size_t i = 0; i < cli->n_commands; i++)
        oct_buf_printf(b, "%s $words[2] = %s ]]; then\n    shift words; (( CURRENT-- )); _%s_%s\n",
                       i ? "elif [[" : "if [[ $CURRENT -gt 2 &&", cli->commands[i].name, cli->name,
                       cli->commands[i].name);
    oct_buf_printf(b, cli->n_commands ? "else\n    _%s_itself\nfi\n" : "_%s_itself\n", cli->name);
    return OCT_OK;
}

/* ---- fish ---- */

static void fish_option(const oct_cli *cli, const oct_cli_live *l, const char *when, oct_buf *b)
{
    const wants w = what_follows(l);
    oct_buf_printf(b, "complete -c %s%s -l ", cli->name, when);
    put_option(l, b);
    if (l->o.letter)
        oct_buf_printf(b, " -s %c", l->o.letter);
    oct_buf_puts(b, w == FILES ? " -r -F" : w == NOTHING ? "" : " -x");
    if (w == WORDS) {
        oct_buf_puts(b, " -a '");
        put_names(l, b);
        oct_buf_puts(b, "'");
    }
    oct_buf_puts(b, " -d '");
    put_summary(l, b);
    oct_buf_puts(b, "'\n");
}

static void fish_table(const oct_cli *cli, const oct_cli_command *command, oct_buf *b)
{
    oct_buf when = OCT_BUF_INIT;
    if (command) {
        oct_buf_printf(&when, " -n '__fish_seen_subcommand_from %s'", command->name);
        oct_buf_printf(b, "complete -c %s -n __fish_use_subcommand -a %s -d '", cli->name, command->name);
        put_text(command->summary, b);
        oct_buf_puts(b, "'\n");
    } else if (cli->n_commands) {
        oct_buf_puts(&when, " -n 'not __fish_seen_subcommand_from");
        for (size_t i = 0; i < cli->n_commands; i++)
            oct_buf_printf(&when, " %s", cli->commands[i].name);
        oct_buf_puts(&when, "'");
    }
    for (size_t i = 0; i < cli->n_live; i++)
        if (offered(&cli->live[i]))
            fish_option(cli, &cli->live[i], oct_buf_str(&when), b);
    b->failed |= when.failed;
    oct_buf_free(&when);
}

static oct_status fish(oct_cli *cli, oct_buf *b, oct_err *err)
{
    oct_buf_printf(b, "# fish: put this file into ~/.config/fish/completions, as %s.fish\n", cli->name);
    return each_table(cli, fish_table, b, err);
}

/* ---- */

const char *oct_cli_shell(size_t i, const char **summary)
{
    static const char *const names[] = { "bash", "zsh", "fish" };
    *summary = NULL;
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

oct_status oct_cli_completion(oct_cli *cli, const char *shell, oct_buf *b, oct_err *err)
{
    if (strcmp(shell, "bash") == 0)
        return bash(cli, b, err);
    return strcmp(shell, "zsh") == 0 ? zsh(cli, b, err) : fish(cli, b, err);
}
