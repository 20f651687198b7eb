/* lib/cli/cli_int.h -- within lib/cli: the options in force for one command. */
#ifndef OCT_CLI_CLI_INT_H
#define OCT_CLI_CLI_INT_H

#include "base/buf.h"
#include "cli/cli.h"

/* An entry of the chosen table, OPT_COMMON replaced by what it stands for. */
typedef struct oct_cli_live {
    oct_cli_opt o;
    int times;                /* how often it was given */
    bool off;                 /* the last time as --no-x */
    bool on_default;          /* a FLAG that is true unless switched off */
    const char *text_default; /* of an ENUM or ENUM_OR_FILE */
    size_t cap;               /* of the list in o.var */
} oct_cli_live;

bool oct_cli_is_option(const oct_cli_live *l); /* has a long name that users type */
bool oct_cli_is_positional(const oct_cli_live *l);
bool oct_cli_takes_value(const oct_cli_live *l);

/* Makes cli->live for `opts`. OCT_ENOMEM. */
oct_status oct_cli_load(oct_cli *cli, const oct_cli_opt *opts, oct_err *err);
oct_cli_live *oct_cli_find(const oct_cli *cli, const char *name, size_t len);

/* "qconvert explain MODEL NODE [options]" */
void oct_cli_usage(const oct_cli *cli, oct_buf *b);
/* Texts; the caller checks b->failed. `width` is that of the page; all: the page of --help-all. */
void oct_cli_help_text(const oct_cli *cli, oct_buf *b, int width, bool all);
/* The headings of the options with the first of each: what --help-all shows on a terminal. */
void oct_cli_topics_text(const oct_cli *cli, oct_buf *b, int width);
/* The options under the heading that the word names, or one option, or the examples; false: there is no such topic.
 * screen: of more than fits a screen each in one line. */
bool oct_cli_topic_text(const oct_cli *cli, const char *topic, oct_buf *b, int width, bool screen);
/* The names that an option takes, and what each is; where that does not fit a screen of `width` columns (0: any number
 * of lines, of any length), the names and the command that says more. */
void oct_cli_list_text(const oct_cli *cli, const oct_cli_live *l, oct_buf *b, int width);
/* The help of an option with its names and default. */
void oct_cli_full_help(const oct_cli *cli, const oct_cli_live *l, oct_buf *b);
/* mdoc of the OPTIONS section: the tool's options, then each command's. */
oct_status oct_cli_man_text(oct_cli *cli, oct_buf *b, oct_err *err);

/* The i-th shell that oct_cli_completion knows; NULL beyond the last. */
const char *oct_cli_shell(size_t i, const char **summary);
/* A script for one of them, from the tables of the tool and of its commands; afterwards the last of these is loaded. */
oct_status oct_cli_completion(oct_cli *cli, const char *shell, oct_buf *b, oct_err *err);

#endif
