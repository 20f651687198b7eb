/* lib/cli: the OPTIONS section of a manual page, in mdoc, from the option tables (`--help-man`). */
#include "cli/cli_int.h"

#include <string.h>

/* Text for a line of prose: no escape, no macro at the start of a line. */
static void put_text(oct_buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\')
            oct_buf_puts(b, "\\e");
        else if (s[i] == '-')
            oct_buf_puts(b, "\\-");
        else
            oct_buf_add(b, &s[i], 1);
    }
}

/* Words in lines of about 76 columns; a word that would read as a request gets a zero-width start. */
static void put_prose(oct_buf *b, const char *s)
{
    size_t at = 0;
    while (*s) {
        size_t n = strcspn(s, " \n");
        if (n == 0) {
            s++;
            continue;
        }
        bool fresh = at == 0 || at + 1 + n > 74;
        if (at > 0)
            oct_buf_puts(b, fresh ? "\n" : " ");
        at = fresh ? n : at + 1 + n;
        if (fresh && (s[0] == '.' || s[0] == '\''))
            oct_buf_puts(b, "\\&");
        put_text(b, s, n);
        /* mdoc spaces sentences by itself when each begins a line. */
        if (s[n - 1] == '.' && s[n] == ' ')
            at = 1000;
        s += n;
    }
    oct_buf_puts(b, "\n");
}

/* An argument of a macro: \& keeps a short word ("No", "It") from being taken for a macro. */
static void put_arg(oct_buf *b, const char *s)
{
    oct_buf_puts(b, "\\&");
    put_text(b, s, strlen(s));
}

static void put_item(const oct_cli_live *l, oct_buf *b)
{
    const oct_cli_opt *o = &l->o;
    oct_buf_puts(b, ".It ");
    if (oct_cli_is_positional(l)) {
        oct_buf_puts(b, "Ar ");
        put_arg(b, o->name);
        oct_buf_puts(b, o->kind == OCT_CLI_POSITIONALS ? " ...\n" : "\n");
        return;
    }
    if (o->letter)
        oct_buf_printf(b, "Fl %c , ", o->letter);
    oct_buf_puts(b, "Fl \\-");
    put_text(b, o->name, strlen(o->name));
    if (oct_cli_takes_value(l)) {
        oct_buf_puts(b, " Ar ");
        put_arg(b, o->arg);
    }
    if (o->kind == OCT_CLI_FLAG && l->on_default) {
        oct_buf_puts(b, " , Fl \\-no\\-");
        put_text(b, o->name, strlen(o->name));
    }
    oct_buf_puts(b, "\n");
}

static void put_entry(const oct_cli *cli, const oct_cli_live *l, oct_buf *b)
{
    oct_buf text = OCT_BUF_INIT;
    oct_cli_full_help(cli, l, &text);
    if (l->o.kind == OCT_CLI_MULTI)
        oct_buf_puts(&text, " (may be repeated)");
    oct_buf_puts(&text, ".");
    b->failed |= text.failed;
    put_item(l, b);
    put_prose(b, oct_buf_str(&text));
    oct_buf_free(&text);
}

/* Whether the program's own table has this option in the same words: a command names such options only. */
static bool is_said(const oct_cli *cli, const oct_cli_live *l, const char *said)
{
    oct_buf entry = OCT_BUF_INIT;
    put_entry(cli, l, &entry);
    bool is = said && oct_cli_is_option(l) && !entry.failed && strstr(said, oct_buf_str(&entry));
    oct_buf_free(&entry);
    return is;
}

static void put_same(const oct_cli *cli, oct_buf *b, const char *said)
{
    size_t n = 0;
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (l->o.kind == OCT_CLI_GROUP && strcmp(l->o.name, "Common options") == 0)
            break;
        if (!l->o.help || !is_said(cli, l, said))
            continue;
        oct_buf_puts(b, n++ == 0 ? ".Pp\nAs without a command:\n" : " ,\n");
        oct_buf_puts(b, ".Fl \\-");
        put_text(b, l->o.name, strlen(l->o.name));
    }
    oct_buf_puts(b, n ? " .\n" : "");
}

/* Arguments and options of the loaded table; mdoc's lists open and close around each group. `said` is the text of the
 * program's own table, where this one is of a command. */
static void put_table(const oct_cli *cli, oct_buf *b, const char *said)
{
    bool open = false;
    const char *group = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < cli->n_live; i++) {
            const oct_cli_live *l = &cli->live[i];
            if (l->o.kind == OCT_CLI_GROUP && pass == 1) {
                group = l->o.name;
                if (said && strcmp(group, "Common options") == 0)
                    break;
            }
            if (!l->o.help || (pass == 0 ? !oct_cli_is_positional(l) : !oct_cli_is_option(l)) || is_said(cli, l, said))
                continue;
            if (group && open)
                oct_buf_puts(b, ".El\n");
            if (group) /* a paragraph right after a heading would be one too many */
                oct_buf_printf(b, "%s%s:\n", open ? ".Pp\n" : "", group);
            if (group || !open)
                oct_buf_puts(b, ".Bl -tag -width Ds\n");
            open = true;
            group = NULL;
            put_entry(cli, l, b);
        }
    }
    if (open)
        oct_buf_puts(b, ".El\n");
    put_same(cli, b, said);
}

oct_status oct_cli_man_text(oct_cli *cli, oct_buf *b, oct_err *err)
{
    const oct_cli_command *asked = cli->command;
    /* A page must be the same on every machine, so text that depends on the CPU is omitted. */
    const char *names = cli->isa_names;
    cli->isa_names = NULL;
    oct_status s = OCT_OK;
    if (!asked) {
        put_table(cli, b, NULL);
        oct_buf own = OCT_BUF_INIT;
        oct_buf_puts(&own, oct_buf_str(b));
        b->failed |= own.failed;
        for (size_t i = 0; i < cli->n_commands && s == OCT_OK; i++) {
            cli->command = &cli->commands[i];
            s = oct_cli_load(cli, cli->command->opts, err);
            if (s != OCT_OK)
                break;
            oct_buf_printf(b, ".Ss %s %s\n", cli->name, cli->command->name);
            put_prose(b, cli->command->summary);
            put_table(cli, b, oct_buf_str(&own));
        }
        oct_buf_free(&own);
    } else {
        put_table(cli, b, NULL);
    }
    cli->command = asked;
    cli->isa_names = names;
    return s;
}
