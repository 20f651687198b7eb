/* lib/cli: the page that --help prints. */
#include "cli/cli_int.h"
#include "cli/textfmt.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { TAG_MAX = 26, MARGIN = 2, SCREEN = 24 /* lines */ };

/* "-o, --output FILE" */
static void tag_text(const oct_cli_live *l, oct_buf *b)
{
    const oct_cli_opt *o = &l->o;
    if (oct_cli_is_positional(l)) {
        oct_buf_printf(b, "%s%s", o->name, o->kind == OCT_CLI_POSITIONALS ? "..." : "");
        return;
    }
    if (o->letter)
        oct_buf_printf(b, "-%c, ", o->letter);
    else
        oct_buf_puts(b, "    ");
    oct_buf_printf(b, "--%s%s", o->kind == OCT_CLI_FLAG && l->on_default ? "[no-]" : "", o->name);
    if (oct_cli_takes_value(l))
        oct_buf_printf(b, " %s%s", o->arg, o->kind == OCT_CLI_MULTI ? "..." : "");
}

/* The names, when there are few enough to read in a line. */
static void few_names(const oct_cli_live *l, oct_buf *b)
{
    const char *name, *summary;
    size_t n = 0, len = 0;
    for (; (name = l->o.names(n, &summary)); n++)
        len += strlen(name) + 2;
    if (n == 0 || len > 90) {
        oct_buf_printf(b, "; '%s help' lists the names", l->o.name);
        return;
    }
    oct_buf_puts(b, ": ");
    for (size_t i = 0; i < n; i++)
        oct_buf_printf(b, "%s%s", i == 0 ? "" : ", ", l->o.names(i, &summary));
}

void oct_cli_full_help(const oct_cli *cli, const oct_cli_live *l, oct_buf *b)
{
    const oct_cli_opt *o = &l->o;
    oct_buf_puts(b, o->help);
    if (o->names)
        few_names(l, b);
    if (o->kind == OCT_CLI_ENUM_OR_FILE)
        oct_buf_puts(b, ", or a file as ./mine");
    if (l->text_default)
        oct_buf_printf(b, " [default: %s]", l->text_default);
    if (strcmp(o->name, "isa") == 0 && o->var == &cli->isa && cli->isa_names)
        oct_buf_printf(b, ": %s", cli->isa_names);
}

/* What --help shows alone: the names of OPT_USUAL, or NULL: all. */
static const char *usual_names(const oct_cli *cli)
{
    for (size_t i = 0; i < cli->n_live; i++)
        if (cli->live[i].o.kind == OCT_CLI_USUAL)
            return cli->live[i].o.name;
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *w = words; w; w = strchr(w, ' ')) {
        w += *w == ' ';
        if (strncmp(w, word, n) == 0 && (w[n] == ' ' || !w[n]))
            return true;
    }
    return false;
}

/* usual: names that are shown alone, or NULL. */
static bool shown(const oct_cli_live *l, bool positional, const char *usual)
{
    if (!l->o.help || !(positional ? oct_cli_is_positional(l) : oct_cli_is_option(l)))
        return false;
    return positional || !usual || has_word(usual, l->o.name);
}

static int tag_column(const oct_cli *cli, const char *usual)
{
    int w = 0;
    for (size_t i = 0; i < cli->n_live; i++) {
        if (!shown(&cli->live[i], true, usual) && !shown(&cli->live[i], false, usual))
            continue;
        oct_buf tag = OCT_BUF_INIT;
        tag_text(&cli->live[i], &tag);
        int n = (int)tag.len;
        oct_buf_free(&tag);
        w = n > w && n <= TAG_MAX ? n : w;
    }
    return MARGIN + w + 2;
}

static void entry(oct_buf *b, const char *tag, const char *text, int column, int width)
{
    oct_buf_printf(b, "%*s%s", MARGIN, "", tag);
    int at = MARGIN + oct_utf8_width(tag);
    if (at + 2 > column) {
        oct_buf_puts(b, "\n");
        at = 0;
    }
    oct_buf_printf(b, "%*s", column - at, "");
    oct_text_wrap(b, text, column, column, width);
    oct_buf_puts(b, "\n");
}

/* Length of the longest start of a text that ends where a clause does and takes at most `room` columns; of the first
 * clause, if none does. */
static size_t clauses(const char *text, size_t room)
{
    size_t best = 0;
    bool inside = false;
    for (size_t n = 1;; n++) {
        inside = (inside || text[n] == '[') && text[n] != ']';
        const bool ends = !text[n] || (!inside && strchr(";:", text[n]) && text[n + 1] == ' ') ||
                          (text[n] == ' ' && text[n + 1] == '[');
        if (ends && (best == 0 || n <= room))
            best = n;
        if (!text[n])
            return best;
    }
}

/* Complete clauses that fit in a line, and the names if there is room. */
static void short_help(const oct_cli_live *l, oct_buf *b, size_t room)
{
    oct_buf names = OCT_BUF_INIT;
    oct_buf_add(b, l->o.help, clauses(l->o.help, room));
    if (l->o.names)
        few_names(l, &names);
    if (l->o.names && *oct_buf_str(&names) == ':' && b->len + names.len <= room)
        oct_buf_puts(b, oct_buf_str(&names));
    b->failed |= names.failed;
    oct_buf_free(&names);
}

static void option_entry(const oct_cli *cli, const oct_cli_live *l, oct_buf *b, int column, int width, bool brief)
{
    oct_buf tag = OCT_BUF_INIT, text = OCT_BUF_INIT;
    tag_text(l, &tag);
    if (brief)
        short_help(l, &text, (size_t)(width - column));
    else
        oct_cli_full_help(cli, l, &text);
    b->failed |= tag.failed || text.failed;
    entry(b, oct_buf_str(&tag), oct_buf_str(&text), column, width);
    oct_buf_free(&tag);
    oct_buf_free(&text);
}

/* What follows the names of program and command. */
static void usage_arguments(const oct_cli *cli, oct_buf *b)
{
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (oct_cli_is_positional(l))
            oct_buf_printf(b, l->o.lo > 0 ? " %s%s" : " [%s%s]", l->o.name,
                           l->o.kind == OCT_CLI_POSITIONALS ? "..." : "");
    }
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = cli->live[i].o.kind == OCT_CLI_REQUIRED
                                    ? oct_cli_find(cli, cli->live[i].o.name, strlen(cli->live[i].o.name))
                                    : NULL;
        if (l && oct_cli_is_option(l))
            oct_buf_printf(b, " --%s %s", l->o.name, l->o.arg ? l->o.arg : "");
    }
    oct_buf_puts(b, " [options]");
}

void oct_cli_usage(const oct_cli *cli, oct_buf *b)
{
    oct_buf_printf(b, "%s%s%s", cli->name, cli->command ? " " : "", cli->command ? cli->command->name : "");
    usage_arguments(cli, b);
}

static void usage_line(const oct_cli *cli, oct_buf *b, int width)
{
    oct_buf u = OCT_BUF_INIT;
    usage_arguments(cli, &u);
    const char *sub = cli->command ? cli->command->name : "";
    oct_buf_printf(b, "Usage: %s%s%s ", cli->name, *sub ? " " : "", sub);
    int at = (int)(8 + strlen(cli->name) + (*sub ? 1 : 0) + strlen(sub));
    oct_text_wrap(b, oct_buf_str(&u), at, at, width);
    oct_buf_puts(b, "\n");
    if (!cli->command && cli->n_commands > 0)
        oct_buf_printf(b, "       %s COMMAND ...\n", cli->name);
    b->failed |= u.failed;
    oct_buf_free(&u);
}

static void positionals(const oct_cli *cli, oct_buf *b, int column, int width)
{
    bool any = false;
    for (size_t i = 0; i < cli->n_live; i++) {
        if (!shown(&cli->live[i], true, NULL))
            continue;
        oct_buf_puts(b, any ? "" : "\nArguments:\n");
        any = true;
        option_entry(cli, &cli->live[i], b, column, width, false);
    }
}

static void all_options(const oct_cli *cli, oct_buf *b, int column, int width)
{
    const char *group = "Options";
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (l->o.kind == OCT_CLI_GROUP)
            group = l->o.name;
        if (!shown(l, false, NULL))
            continue;
        if (group)
            oct_buf_printf(b, "\n%s:\n", group);
        group = NULL;
        option_entry(cli, l, b, column, width, false);
    }
}

static void usual_options(const oct_cli *cli, oct_buf *b, int column, int width, const char *usual)
{
    size_t all = 0;
    for (size_t i = 0; i < cli->n_live; i++)
        all += shown(&cli->live[i], false, NULL);
    oct_buf_printf(b, "\nOptions used most ('%s%s%s --help-all', 'man %s': all %zu):\n", cli->name,
                   cli->command ? " " : "", cli->command ? cli->command->name : "", cli->name, all);
    for (size_t i = 0; i < cli->n_live; i++)
        if (shown(&cli->live[i], false, usual))
            option_entry(cli, &cli->live[i], b, column, width, true);
}

/* ---- by topic ---- */

/* The word by which a heading is asked for: its last one, but the first of "Common options"; of a heading with a
 * sentence behind it, of what stands before. */
static void topic_word(const char *title, char dst[OCT_CLI_WORD])
{
    const size_t n = strcspn(title, ":");
    size_t from = n;
    while (from > 0 && title[from - 1] != ' ')
        from--;
    size_t len = n - from;
    if (from > 0 && strncmp(title + from, "options", len) == 0)
        from = 0, len = strcspn(title, " ");
    len = len < OCT_CLI_WORD - 1 ? len : OCT_CLI_WORD - 1;
    for (size_t i = 0; i < len; i++)
        dst[i] = (char)tolower((unsigned char)title[from + i]);
    dst[len] = 0;
}

/* The heading over an option: that of the last group before it. */
static const char *heading(const oct_cli *cli, size_t option)
{
    for (size_t i = option; i-- > 0;)
        if (cli->live[i].o.kind == OCT_CLI_GROUP)
            return cli->live[i].o.name;
    return "Options";
}

/* The first options of a heading, as many as fit in a line, and how many more there are. */
static void names_under(const oct_cli *cli, size_t first, oct_buf *b, size_t room)
{
    const char *title = heading(cli, first);
    size_t more = 0;
    for (size_t i = first; i < cli->n_live; i++) {
        const oct_cli_live *l = &cli->live[i];
        if (!shown(l, false, NULL) || strcmp(heading(cli, i), title) != 0)
            continue;
        if (more || b->len + strlen(l->o.name) + 16 > room)
            more++;
        else
            oct_buf_printf(b, "%s--%s", b->len ? " " : "", l->o.name);
    }
    if (more)
        oct_buf_printf(b, " and %zu more", more);
}

static bool begins_topic(const oct_cli *cli, size_t i)
{
    if (!shown(&cli->live[i], false, NULL))
        return false;
    for (size_t k = 0; k < i; k++)
        if (shown(&cli->live[k], false, NULL) && strcmp(heading(cli, k), heading(cli, i)) == 0)
            return false;
    return true;
}

void oct_cli_topics_text(const oct_cli *cli, oct_buf *b, int width)
{
    enum { COLUMN = 14 };
    char word[OCT_CLI_WORD], call[2 * OCT_CLI_WORD];
    const char *examples = cli->command ? cli->command->examples : cli->examples;
    snprintf(call, sizeof call, "%s%s%s", cli->name, cli->command ? " " : "", cli->command ? cli->command->name : "");
    oct_buf_printf(b, "Topics ('%s --help TOPIC'; with the name of an option, that one):\n", call);
    for (size_t i = 0; i < cli->n_live; i++) {
        oct_buf names = OCT_BUF_INIT;
        if (!begins_topic(cli, i))
            continue;
        topic_word(heading(cli, i), word);
        names_under(cli, i, &names, (size_t)(width - COLUMN));
        entry(b, word, oct_buf_str(&names), COLUMN, width);
        b->failed |= names.failed;
        oct_buf_free(&names);
    }
    if (examples)
        entry(b, "examples", "command lines that work", COLUMN, width);
    oct_buf_printf(b, "\nAll of it: %s --help-all | more\n", call);
}

static size_t lines_of(const oct_buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

static void topic_options(const oct_cli *cli, const char *title, oct_buf *b, int width, bool brief)
{
    const int column = tag_column(cli, NULL);
    oct_buf_printf(b, "%s:\n", title);
    for (size_t i = 0; i < cli->n_live; i++)
        if (shown(&cli->live[i], false, NULL) && strcmp(heading(cli, i), title) == 0)
            option_entry(cli, &cli->live[i], b, column, width, brief);
}

bool oct_cli_topic_text(const oct_cli *cli, const char *topic, oct_buf *b, int width, bool screen)
{
    const char *examples = cli->command ? cli->command->examples : cli->examples;
    char word[OCT_CLI_WORD];
    for (size_t i = 0; i < cli->n_live; i++) {
        topic_word(heading(cli, i), word);
        if (!begins_topic(cli, i) || strcmp(word, topic) != 0)
            continue;
        oct_buf whole = OCT_BUF_INIT;
        topic_options(cli, heading(cli, i), &whole, width, false);
        if (screen && lines_of(&whole) >= SCREEN) {
            topic_options(cli, heading(cli, i), b, width, true);
            oct_buf_printf(b, "More: --help and an option's name, or | more behind this command\n");
        } else {
            oct_buf_add(b, whole.data, whole.len);
        }
        b->failed |= whole.failed;
        oct_buf_free(&whole);
        return true;
    }
    const oct_cli_live *l = oct_cli_find(cli, topic, strlen(topic));
    if (l && shown(l, false, NULL)) {
        option_entry(cli, l, b, tag_column(cli, NULL), width, false);
        return true;
    }
    if (examples && strcmp(topic, "examples") == 0) {
        oct_buf_printf(b, "Examples:\n%s", examples);
        return true;
    }
    return false;
}

static void commands(const oct_cli *cli, oct_buf *b, int column, int width)
{
    oct_buf_printf(b, "\nCommands ('%s COMMAND --help' says more):\n", cli->name);
    for (size_t i = 0; i < cli->n_commands; i++)
        entry(b, cli->commands[i].name, cli->commands[i].summary, column, width);
}

/* The short page shall fit a screen of 24 lines with the line that asks for the next command: it leaves out the
 * arguments of a tool that has commands, since the summary names them, and all examples but the first. */
void oct_cli_help_text(const oct_cli *cli, oct_buf *b, int width, bool all)
{
    const char *usual = all ? NULL : usual_names(cli);
    int column = tag_column(cli, usual);
    const char *summary = cli->command ? cli->command->summary : cli->summary;
    const char *examples = cli->command ? cli->command->examples : cli->examples;
    usage_line(cli, b, width);
    if (summary) {
        oct_buf_puts(b, "\n");
        oct_text_wrap(b, summary, 0, 0, width);
        oct_buf_puts(b, "\n");
    }
    const bool has_commands = !cli->command && cli->n_commands > 0;
    if (has_commands)
        commands(cli, b, column, width);
    if (!usual || !has_commands)
        positionals(cli, b, column, width);
    if (usual) {
        usual_options(cli, b, column, width, usual);
        if (examples)
            oct_buf_printf(b, "\nExample: %.*s\n", (int)strcspn(examples + MARGIN, "\n"), examples + MARGIN);
        return;
    }
    all_options(cli, b, column, width);
    if (examples)
        oct_buf_printf(b, "\nExamples:\n%s", examples);
    oct_buf_printf(b, "\nThe manual, %s(1), says more and lists the exit codes.\n", cli->name);
}

/* Names alone, in columns. */
static void put_names(const oct_cli_live *l, oct_buf *b, int w, int width)
{
    const char *name, *summary;
    const size_t columns = width / (w + 2) > 1 ? (size_t)(width / (w + 2)) : 1;
    size_t gap = 0;
    for (size_t i = 0; (name = l->o.names(i, &summary)); i++) {
        if (i % columns)
            oct_buf_printf(b, "%*s%s", (int)gap, "", name);
        else
            oct_buf_printf(b, "%s%s", i ? "\n" : "", name);
        gap = (size_t)w + 2 - strlen(name);
    }
    oct_buf_puts(b, "\n");
}

void oct_cli_list_text(const oct_cli *cli, const oct_cli_live *l, oct_buf *b, int width)
{
    const char *name, *summary;
    oct_buf all = OCT_BUF_INIT;
    int w = 0;
    for (size_t i = 0; (name = l->o.names(i, &summary)); i++)
        w = (int)strlen(name) > w ? (int)strlen(name) : w;
    for (size_t i = 0; (summary = NULL, name = l->o.names(i, &summary)); i++) {
        oct_buf_puts(&all, name);
        if (summary) {
            oct_buf_printf(&all, "%*s", w + 2 - (int)strlen(name), "");
            oct_text_wrap(&all, summary, w + 2, w + 2, width ? width : INT_MAX);
        }
        oct_buf_puts(&all, "\n");
    }
    if (width && lines_of(&all) > SCREEN) {
        put_names(l, b, w, width);
        oct_buf_printf(b, "\nWhat each is: %s%s%s --%s help | more\n", cli->name, cli->command ? " " : "",
                       cli->command ? cli->command->name : "", l->o.name);
    } else {
        oct_buf_add(b, all.data, all.len);
    }
    b->failed |= all.failed;
    oct_buf_free(&all);
}
