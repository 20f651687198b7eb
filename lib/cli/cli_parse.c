/* lib/cli: from argv into the variables of an option table. */
#include "cli/cli.h"

#include "base/io.h"
#include "cli/cli_int.h"
#include "cli/textfmt.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct parse {
    oct_cli *cli;
    int argc, i; /* i: the argument being read */
    char **argv;
    oct_cli_list pos; /* positionals */
    size_t pos_cap;
    const oct_cli_live *before;  /* a repeatable option whose value was the argument before */
    const oct_cli_live *spilled; /* such an option that a positional followed: an unquoted pattern, perhaps */
} parse;

static bool is_switch(const oct_cli_live *l)
{
    return l->o.kind == OCT_CLI_FLAG;
}

static oct_cli_live *find_option(const oct_cli *cli, const char *name, size_t len)
{
    oct_cli_live *l = oct_cli_find(cli, name, len);
    return l && oct_cli_is_option(l) ? l : NULL;
}

static oct_cli_live *find_letter(const oct_cli *cli, char letter)
{
    for (size_t i = 0; i < cli->n_live; i++)
        if (oct_cli_is_option(&cli->live[i]) && cli->live[i].o.letter == letter)
            return &cli->live[i];
    return NULL;
}

/* The name nearest to the typed one if it differs in at most a third of its letters, or begins with it. */
static const char *nearest(const char *typed, const char *best, int *best_cost, const char *name)
{
    size_t n = strlen(typed);
    int cost = oct_edit_distance(typed, name);
    if (n >= 2 && strncmp(typed, name, n) == 0)
        cost = 0;
    if (cost < *best_cost && cost <= 1 + (int)n / 4) {
        *best_cost = cost;
        return name;
    }
    return best;
}

static oct_status unknown_option(const parse *p, const char *name, size_t len, oct_err *err)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)(len < 63 ? len : 63), name);
    const char *best = NULL;
    int cost = 1000;
    for (size_t i = 0; i < p->cli->n_live; i++)
        if (oct_cli_is_option(&p->cli->live[i]) && p->cli->live[i].o.help)
            best = nearest(typed, best, &cost, p->cli->live[i].o.name);
    const char *hint = NULL;
    if (p->cli->meant)
        p->cli->meant("", typed, &hint);
    oct_fail(err, OCT_EUSAGE, "unknown option '--%.*s'", (int)len, name);
    if (hint)
        oct_hint(err, "%s", hint);
    else if (best)
        oct_hint(err, "did you mean '--%s'?", best);
    return OCT_EUSAGE;
}

static oct_status push(oct_cli *cli, oct_cli_list *list, size_t *cap, const char *s, oct_err *err)
{
    if (!OCT_GROW(cli->arena, list->v, list->n, *cap))
        return oct_nomem(err);
    list->v[list->n++] = s;
    return OCT_OK;
}

static oct_status set_int(const oct_cli_opt *o, const char *value, oct_err *err)
{
    char *end;
    errno = 0;
    long long x = strtoll(value, &end, 10);
    if (!*value || *end || isspace((unsigned char)*value))
        return oct_fail(err, OCT_EUSAGE, "--%s: '%s' is not a whole number", o->name, value);
    if (errno == ERANGE || x < o->lo || x > o->hi) {
        if (o->hi == INT64_MAX)
            return oct_fail(err, OCT_EUSAGE, "--%s: %s is not %" PRId64 " or more", o->name, value, o->lo);
        return oct_fail(err, OCT_EUSAGE, "--%s: %s is not between %" PRId64 " and %" PRId64, o->name, value, o->lo,
                        o->hi);
    }
    *(int64_t *)o->var = x;
    return OCT_OK;
}

static oct_status set_float(const oct_cli_opt *o, const char *value, oct_err *err)
{
    char *end, lo[32], hi[32];
    double x = strtod(value, &end);
    if (!*value || *end || isspace((unsigned char)*value) || isnan(x) || strpbrk(value, "xX"))
        return oct_fail(err, OCT_EUSAGE, "--%s: '%s' is not a number", o->name, value);
    if (x < o->flo || x > o->fhi)
        return oct_fail(err, OCT_EUSAGE, "--%s: %s is not between %s and %s", o->name, value, oct_f64_text(lo, o->flo),
                        oct_f64_text(hi, o->fhi));
    *(double *)o->var = x;
    return OCT_OK;
}

/* Whether value is of the family of names that ends in '#': that stands for a number from 1 on. */
static bool of_family(const char *name, const char *value)
{
    const size_t n = strcspn(name, "#");
    return name[n] && strncmp(name, value, n) == 0 && value[n] >= '1' && value[n] <= '9' &&
           !value[n + strspn(value + n, "0123456789")];
}

/* Puts the table's own name into *out: tools may compare pointers, and a list outlives `value`. Of a family it is a
 * copy. */
static oct_status check_name(const parse *p, const oct_cli_opt *o, const char *value, const char **out, oct_err *err)
{
    const char *name, *best = NULL, *summary;
    int cost = 1000;
    for (size_t i = 0; (name = o->names(i, &summary)); i++) {
        if (strcmp(name, value) == 0 && !strchr(name, '#')) {
            *out = name;
            return OCT_OK;
        }
        if (of_family(name, value))
            return (*out = oct_arena_strdup(p->cli->arena, value)) ? OCT_OK : oct_nomem(err);
        if (!strchr(name, '#'))
            best = nearest(value, best, &cost, name);
    }
    char other[OCT_CLI_WORD], alias[OCT_CLI_WORD];
    for (size_t i = 0; p->cli->also && p->cli->also(o->name, i, other); i++)
        if (nearest(value, best, &cost, other) == other) {
            snprintf(alias, sizeof alias, "%s", other);
            best = alias;
        }
    const char *hint = NULL;
    if (p->cli->meant && (name = p->cli->meant(o->name, value, &hint))) {
        *out = name;
        return OCT_OK;
    }
    oct_fail(err, OCT_EUSAGE, "--%s: unknown name '%s'", o->name, value);
    if (hint)
        oct_hint(err, "%s", hint);
    else if ((o->kind == OCT_CLI_ENUM_OR_FILE || (o->kind == OCT_CLI_ENUMS && o->lo)) && oct_path_exists(value))
        oct_hint(err, "write a file with its folder: --%s ./%s", o->name, value);
    else if (best)
        oct_hint(err, "did you mean '%s'? '--%s help' lists all", best, o->name);
    else
        oct_hint(err, "'--%s help' lists the names", o->name);
    return OCT_EUSAGE;
}

/* The first name of a list, up to a comma; NULL: no memory. files: a path may have commas, too, and the longest that
 * exists is meant. */
static const char *first_name(const parse *p, bool files, const char *list)
{
    size_t n = strlen(list);
    for (; files && n > strcspn(list, ","); n--) {
        if (list[n] && list[n] != ',')
            continue;
        const char *path = oct_arena_strndup(p->cli->arena, list, n);
        if (!path || (strchr(path, '/') && oct_path_exists(path)))
            return path;
    }
    return oct_arena_strndup(p->cli->arena, list, strcspn(list, ","));
}

static oct_status set_names(parse *p, oct_cli_live *l, const char *value, oct_err *err)
{
    oct_cli_list *list = l->o.var;
    for (const char *s = value;;) {
        const char *one = first_name(p, l->o.lo, s), *name = one;
        if (!one)
            return oct_nomem(err);
        if (!l->o.lo || !strchr(one, '/'))
            OCT_TRY(check_name(p, &l->o, one, &name, err));
        for (size_t i = 0; i < list->n; i++)
            if (strcmp(list->v[i], name) == 0)
                return oct_fail(err, OCT_EUSAGE, "--%s: '%s' is given twice", l->o.name, name);
        OCT_TRY(push(p->cli, list, &l->cap, name, err));
        s += strlen(one);
        if (!*s)
            return OCT_OK;
        s++;
    }
}

static oct_status print_list(parse *p, const oct_cli_live *l, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_cli_list_text(p->cli, l, &b, oct_term_width(p->cli->out));
    oct_status s = b.failed ? oct_nomem(err) : OCT_OK;
    fputs(oct_buf_str(&b), p->cli->out);
    oct_buf_free(&b);
    p->cli->done = true;
    return s;
}

static oct_status set_value(parse *p, oct_cli_live *l, const char *value, oct_err *err)
{
    oct_cli_opt *o = &l->o;
    bool multi = o->kind == OCT_CLI_MULTI;
    bool path = o->kind == OCT_CLI_FILE || o->kind == OCT_CLI_OUT || multi;
    if (l->times++ > 0 && !multi)
        return oct_fail(err, OCT_EUSAGE, "--%s is given twice", o->name);
    if (path && !*value)
        return oct_fail(err, OCT_EUSAGE, "--%s: the value is empty", o->name);
    p->before = multi ? l : NULL;
    switch (o->kind) {
    case OCT_CLI_INT: return set_int(o, value, err);
    case OCT_CLI_FLOAT: return set_float(o, value, err);
    case OCT_CLI_MULTI: return push(p->cli, o->var, &l->cap, value, err);
    case OCT_CLI_ENUM:
    case OCT_CLI_ENUM_OR_FILE:
    case OCT_CLI_ENUMS:
        if (strcmp(value, "help") == 0)
            return print_list(p, l, err);
        if (o->kind == OCT_CLI_ENUM_OR_FILE && (strchr(value, '/') || (o->lo && strchr(value, ':'))))
            break;
        return o->kind == OCT_CLI_ENUMS ? set_names(p, l, value, err) : check_name(p, o, value, o->var, err);
    default: break;
    }
    *(const char **)o->var = value;
    return OCT_OK;
}

static oct_status set_flag(parse *p, oct_cli_live *l, bool on, oct_err *err)
{
    if (l->o.kind == OCT_CLI_COUNT) {
        ++*(int *)l->o.var;
    } else {
        if (l->times > 0 && l->off == on)
            return oct_fail(err, OCT_EUSAGE, "--%s and --no-%s contradict each other", l->o.name, l->o.name);
        if (l->times > 0)
            return oct_fail(err, OCT_EUSAGE, "--%s%s is given twice", on ? "" : "no-", l->o.name);
        *(bool *)l->o.var = on;
        l->off = !on;
    }
    l->times++;
    p->before = NULL;
    return OCT_OK;
}

/* The value in the next argument. One that looks like an option is refused: it is a forgotten value. */
static oct_status next_value(parse *p, const oct_cli_live *l, const char **value, oct_err *err)
{
    const char *next = p->i + 1 < p->argc ? p->argv[p->i + 1] : NULL;
    bool number = l->o.kind == OCT_CLI_INT || l->o.kind == OCT_CLI_FLOAT;
    bool dash = next && next[0] == '-' && next[1] && !(number && !isalpha((unsigned char)next[1]) && next[1] != '-');
    if (next && !dash) {
        *value = next;
        p->i++;
        return OCT_OK;
    }
    oct_fail(err, OCT_EUSAGE, "--%s needs a value (%s)", l->o.name, l->o.arg);
    if (next)
        oct_hint(err, "'%s' was taken for an option; a value that starts with '-' is written --%s=%s", next, l->o.name,
                 next);
    return OCT_EUSAGE;
}

static oct_status long_option(parse *p, const char *arg, oct_err *err)
{
    size_t len = strcspn(arg, "=");
    const char *value = arg[len] ? arg + len + 1 : NULL;
    bool on = true;
    oct_cli_live *l = find_option(p->cli, arg, len);
    if (!l && len > 3 && strncmp(arg, "no-", 3) == 0) {
        l = find_option(p->cli, arg + 3, len - 3);
        on = false;
        if (l && !is_switch(l))
            return oct_fail(err, OCT_EUSAGE, "--%s cannot be negated", l->o.name);
    }
    if (!l)
        return unknown_option(p, arg, len, err);
    if (!oct_cli_takes_value(l)) {
        if (value)
            return oct_fail(err, OCT_EUSAGE, "--%.*s takes no value", (int)len, arg);
        return set_flag(p, l, on, err);
    }
    if (!value)
        OCT_TRY(next_value(p, l, &value, err));
    return set_value(p, l, value, err);
}

/* "-qv", "-n5", "-n 5" */
static oct_status short_options(parse *p, const char *letters, oct_err *err)
{
    for (const char *c = letters; *c; c++) {
        oct_cli_live *l = find_letter(p->cli, *c);
        if (!l) {
            oct_fail(err, OCT_EUSAGE, "unknown option '-%c'", *c);
            if (letters[1] && find_option(p->cli, letters, strlen(letters)))
                oct_hint(err, "did you mean '--%s'?", letters);
            return OCT_EUSAGE;
        }
        if (!oct_cli_takes_value(l)) {
            OCT_TRY(set_flag(p, l, true, err));
            continue;
        }
        const char *value = c + 1;
        if (!*value)
            OCT_TRY(next_value(p, l, &value, err));
        return set_value(p, l, value, err);
    }
    return OCT_OK;
}

static oct_status add_positional(parse *p, const char *a, oct_err *err)
{
    if (p->before)
        p->spilled = p->before;
    return push(p->cli, &p->pos, &p->pos_cap, a, err);
}

static oct_status read_arguments(parse *p, oct_err *err)
{
    bool plain = false; /* after "--" */
    for (; p->i < p->argc && !p->cli->done; p->i++) {
        const char *a = p->argv[p->i];
        if (!plain && strcmp(a, "--") == 0)
            plain = true;
        else if (!plain && a[0] == '-' && a[1] == '-')
            OCT_TRY(long_option(p, a + 2, err));
        else if (!plain && a[0] == '-' && a[1])
            OCT_TRY(short_options(p, a + 1, err));
        else if (*a)
            OCT_TRY(add_positional(p, a, err));
        else
            return oct_fail(err, OCT_EUSAGE, "an argument is empty");
    }
    return OCT_OK;
}

static bool any_action(const oct_cli *cli)
{
    for (size_t i = 0; i < cli->n_live; i++)
        if (cli->live[i].o.kind == OCT_CLI_ACTION && cli->live[i].times > 0)
            return true;
    return false;
}

/* "qcalib mrege a b": neither a file nor a command. */
static oct_status misspelt_command(const parse *p, oct_err *err)
{
    if (p->cli->command || p->cli->n_commands == 0 || p->pos.n == 0)
        return OCT_OK;
    const char *first = p->pos.v[0], *best = NULL;
    int cost = 1000;
    if (strpbrk(first, "./\\") || oct_path_exists(first))
        return OCT_OK;
    for (size_t i = 0; i < p->cli->n_commands; i++)
        best = nearest(first, best, &cost, p->cli->commands[i].name);
    if (strcmp(first, "help") == 0)
        best = "--help";
    if (!best)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "'%s' is neither a file nor a command", first);
    oct_hint(err, "did you mean '%s %s'?", p->cli->name, best);
    return OCT_EUSAGE;
}

static oct_status too_many(const parse *p, size_t at, oct_err *err)
{
    oct_fail(err, OCT_EUSAGE, "unexpected argument '%s'", p->pos.v[at]);
    for (size_t i = 0; p->spilled && i < p->pos.n; i++)
        oct_cli_pattern_hint(p->cli, p->spilled->o.name, p->pos.v[i], err);
    const oct_cli_live *out = find_letter(p->cli, 'o');
    if (out && out->o.kind == OCT_CLI_OUT && !out->times && p->pos.v[at][0] != '-' && !oct_path_exists(p->pos.v[at]))
        oct_hint(err, "a file to write is named with -o: -o %s", p->pos.v[at]);
    else if (p->cli->is_data && (p->cli->is_data(p->pos.v[at]) || oct_path_is_dir(p->pos.v[at])))
        oct_hint(err, "samples are given with --data: --data %s", p->pos.v[at]);
    return OCT_EUSAGE;
}

static oct_status usage_hint(const oct_cli *cli, oct_err *err)
{
    oct_buf usage = OCT_BUF_INIT;
    oct_cli_usage(cli, &usage);
    oct_hint(err, "usage: %s; '%s%s%s --help' says more", oct_buf_str(&usage), cli->name, cli->command ? " " : "",
             cli->command ? cli->command->name : "");
    oct_buf_free(&usage);
    return OCT_EUSAGE;
}

/* The first positional without a value if there are fewer than needed. */
static oct_status missing(const oct_cli *cli, size_t have, oct_err *err)
{
    size_t i = 0;
    for (; !oct_cli_is_positional(&cli->live[i]) || have >= (size_t)cli->live[i].o.lo; i++)
        have -= oct_cli_is_positional(&cli->live[i]) ? (size_t)cli->live[i].o.lo : 0;
    const oct_cli_opt *o = &cli->live[i].o;
    if (have == 0)
        oct_fail(err, OCT_EUSAGE, "%s is missing", o->name);
    else
        oct_fail(err, OCT_EUSAGE, "%zu %s given, at least %" PRId64 " needed", have, o->name, o->lo);
    return usage_hint(cli, err);
}

static oct_status give_positionals(parse *p, oct_err *err)
{
    oct_cli *cli = p->cli;
    OCT_TRY(misspelt_command(p, err));
    size_t at = 0, need = 0; /* need: required by the positionals that follow */
    for (size_t i = 0; i < cli->n_live; i++)
        need += oct_cli_is_positional(&cli->live[i]) ? (size_t)cli->live[i].o.lo : 0;
    if (p->pos.n < need && !any_action(cli))
        return missing(cli, p->pos.n, err);
    for (size_t i = 0; i < cli->n_live; i++) {
        oct_cli_live *l = &cli->live[i];
        if (!oct_cli_is_positional(l))
            continue;
        need -= (size_t)l->o.lo;
        size_t have = p->pos.n - at, most = have > need ? have - need : 0;
        size_t take = l->o.kind == OCT_CLI_POSITIONAL && most > 1 ? 1 : most;
        if (take == 0)
            continue;
        l->times = (int)take;
        if (l->o.kind == OCT_CLI_POSITIONAL)
            *(const char **)l->o.var = p->pos.v[at];
        else
            *(oct_cli_list *)l->o.var = (oct_cli_list){ p->pos.v + at, take };
        at += take;
    }
    return at < p->pos.n ? too_many(p, at, err) : OCT_OK;
}

/* Given, and not as --no-x. name: n bytes. */
static bool in_force(const oct_cli *cli, const char *name, size_t n)
{
    const oct_cli_live *l = oct_cli_find(cli, name, n);
    return l && l->times > 0 && !l->off;
}

/* The first of the names, separated by spaces, that is in force; NULL: none is. *n: its length. */
static const char *any_in_force(const oct_cli *cli, const char *names, size_t *n)
{
    for (const char *at = names; *at; at += *n + (at[*n] == ' ')) {
        *n = strcspn(at, " ");
        if (in_force(cli, at, *n))
            return at;
    }
    return NULL;
}

/* The option that is not there is explained by the beginning of its help. */
static oct_status fail_needs(const oct_cli *cli, const char *one, size_t n, const char *other, oct_err *err)
{
    const oct_cli_live *l = find_option(cli, other, strlen(other));
    oct_fail(err, OCT_EUSAGE, "--%.*s needs --%s", (int)n, one, other);
    if (l && l->o.help && l->o.arg)
        oct_hint(err, "--%s %s: %.*s", other, l->o.arg, (int)strcspn(l->o.help, ";"), l->o.help);
    return OCT_EUSAGE;
}

static oct_status check_rules(const oct_cli *cli, oct_err *err)
{
    bool action = any_action(cli);
    for (size_t i = 0; i < cli->n_live; i++) {
        const oct_cli_opt *o = &cli->live[i].o;
        size_t n, n_other;
        if (o->kind == OCT_CLI_REQUIRED && !action && !oct_cli_given(cli, o->name) &&
            !(o->spares && o->spares(o->var))) {
            oct_fail(err, OCT_EUSAGE, "--%s is missing", o->name);
            return usage_hint(cli, err);
        }
        if (o->kind != OCT_CLI_CONFLICT && o->kind != OCT_CLI_NEEDS)
            continue;
        const char *one = any_in_force(cli, o->name, &n), *other = any_in_force(cli, o->arg, &n_other);
        if (one && other && o->kind == OCT_CLI_CONFLICT)
            return oct_fail(err, OCT_EUSAGE, "--%.*s and --%.*s contradict each other", (int)n, one, (int)n_other,
                            other);
        if (one && !other && o->kind == OCT_CLI_NEEDS)
            return fail_needs(cli, one, n, o->arg, err);
    }
    return OCT_OK;
}

static oct_status check_outputs(const oct_cli *cli, oct_err *err)
{
    for (size_t i = 0; i < cli->n_live; i++)
        for (size_t k = i + 1; k < cli->n_live; k++) {
            const oct_cli_live *a = &cli->live[i], *b = &cli->live[k];
            if (a->o.kind != OCT_CLI_OUT || b->o.kind != OCT_CLI_OUT || !a->times || !b->times)
                continue;
            const char *x = *(const char **)a->o.var, *y = *(const char **)b->o.var;
            if (strcmp(x, y) == 0 || oct_same_output(x, y))
                return oct_fail(err, OCT_EUSAGE, "--%s and --%s write to the same place, '%s'", a->o.name, b->o.name,
                                x);
        }
    return OCT_OK;
}

/* ---- help ---- */

/* Headings are the lines that begin with a letter and end in a colon. */
static void print_help(FILE *f, const char *text)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        const bool heading = n > 1 && *text != ' ' && text[n - 1] == ':';
        if (heading)
            oct_term_style(f, OCT_STYLE_BOLD);
        fwrite(text, 1, n, f);
        if (heading)
            oct_term_style(f, OCT_STYLE_NONE);
        n += text[n] == '\n';
        fputs(text[n - 1] == '\n' ? "\n" : "", f);
    }
}

static oct_status print_page(oct_cli *cli, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_status s = OCT_OK;
    cli->done = true;
    if (cli->help_man) {
        s = oct_cli_man_text(cli, &b, err);
    } else if (cli->completion) {
        s = oct_cli_completion(cli, cli->completion, &b, err);
    } else if (cli->version) {
        oct_buf_printf(&b, "%s %s (octet%s%s)\n", cli->name, OCT_VERSION, cli->isa_text ? "; isa: " : "",
                       cli->isa_text ? cli->isa_text : "");
        if (cli->verbose && cli->isa_note)
            oct_buf_printf(&b, "%s\n", cli->isa_note);
    } else {
        const int term = oct_term_width(cli->out), w = term == 0 ? 80 : term < 50 ? 50 : term > 100 ? 100 : term;
        if (cli->topic && oct_cli_topic_text(cli, cli->topic, &b, w, term > 0))
            ;
        else if (cli->help_all && term > 0)
            oct_cli_topics_text(cli, &b, w);
        else
            oct_cli_help_text(cli, &b, w, cli->help_all);
    }
    if (s == OCT_OK && b.failed)
        s = oct_nomem(err);
    if (s == OCT_OK && (cli->help || cli->help_all))
        print_help(cli->out, oct_buf_str(&b));
    else if (s == OCT_OK)
        fwrite(oct_buf_str(&b), 1, b.len, cli->out);
    oct_buf_free(&b);
    return s;
}

/* --help and --version precede everything, including mistakes, since who asks for help may have made one. */
static void look_for_help(parse *p)
{
    for (int i = p->i; i < p->argc && strcmp(p->argv[i], "--") != 0; i++) {
        const char *a = p->argv[i];
        const bool help = strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0, all = strcmp(a, "--help-all") == 0;
        p->cli->help |= help;
        p->cli->help_all |= all;
        if ((help || all) && i + 1 < p->argc && p->argv[i + 1][0] != '-')
            p->cli->topic = p->argv[i + 1];
        p->cli->version |= strcmp(a, "--version") == 0;
        p->cli->verbose += strcmp(a, "--verbose") == 0 || strcmp(a, "-v") == 0;
        p->cli->help_man |= strcmp(a, "--help-man") == 0;
    }
}

/* Also 'qconvert --help lint', which is 'qconvert lint --help'. */
static void choose_command(parse *p)
{
    const bool asks = p->argc > 2 && strcmp(p->argv[1], "--help") == 0;
    for (size_t i = 0; p->argc > 1 && i < p->cli->n_commands; i++)
        if (strcmp(p->argv[asks ? 2 : 1], p->cli->commands[i].name) == 0) {
            p->cli->command = &p->cli->commands[i];
            p->i = asks ? 1 : 2;
        }
}

oct_status oct_cli_parse(oct_cli *cli, int argc, char **argv, oct_err *err)
{
    cli->out = cli->out ? cli->out : stdout;
    cli->err = cli->err ? cli->err : stderr;
    oct_progress_init(&cli->progress, cli->err, 0);
    cli->arena = oct_arena_create();
    if (!cli->arena)
        return oct_nomem(err);
    parse p = { .cli = cli, .argc = argc, .argv = argv, .i = 1 };
    choose_command(&p);
    OCT_TRY(oct_cli_load(cli, cli->command ? cli->command->opts : cli->opts, err));
    look_for_help(&p);
    if (cli->help || cli->help_all || cli->version || cli->help_man)
        return print_page(cli, err);
    OCT_TRY(read_arguments(&p, err));
    if (cli->done)
        return OCT_OK;
    if (cli->help || cli->help_all || cli->version || cli->completion)
        return print_page(cli, err);
    OCT_TRY(give_positionals(&p, err));
    OCT_TRY(check_rules(cli, err));
    OCT_TRY(check_outputs(cli, err));
    const oct_cli_live *pr = find_option(cli, "progress", 8);
    oct_progress_init(&cli->progress, cli->err, pr && pr->times ? !pr->off : cli->quiet ? 0 : -1);
    return OCT_OK;
}
