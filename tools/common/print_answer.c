/* Sentences and commands, wrapped. */
#include "common/print_answer.h"

#include "cli/textfmt.h"

#include <ctype.h>
#include <string.h>

enum { ABOUT = 10, INDENT = 4, LEAST = 20, WIDTH = 80, MOST = 100 };

static int width_of(FILE *f)
{
    const int w = oct_term_width(f);
    return w == 0 ? WIDTH : w < LEAST ? LEAST : w > MOST ? MOST : w;
}

void tool_print_item(const char *about, const char *text, FILE *f)
{
    oct_print_hanging(f, about, about ? ABOUT : 0, text, width_of(f));
}

static bool has(const oct_item *answer, const char *about)
{
    for (const oct_item *x = NULL; (x = oct_item_next(answer, x));)
        if (strcmp(oct_item_text(x, "about"), about) == 0)
            return true;
    return false;
}

/* What comes next waits where there is another command to try and a question to answer first. */
static void print_items(const oct_item *answer, bool first, FILE *f)
{
    const bool waits = has(answer, "try") && has(answer, "question");
    const char *last = "";
    for (const oct_item *x = NULL; (x = oct_item_next(answer, x)); first = false) {
        char about[ABOUT];
        const char *now = oct_item_text(x, "about");
        if (waits && strcmp(now, "next") == 0)
            continue;
        snprintf(about, sizeof about, "%s", strcmp(now, last) == 0 ? "" : now);
        about[0] = (char)toupper((unsigned char)about[0]);
        tool_print_item(first ? NULL : about, oct_item_text(x, "text"), f);
        if (oct_item_at(x, "command"))
            oct_print_command(f, oct_item_text(x, "command"), INDENT, width_of(f));
        last = now;
    }
}

void tool_print_answer(const oct_item *answer, FILE *f)
{
    print_items(answer, true, f);
}

void tool_print_more(const oct_item *answer, FILE *f)
{
    print_items(answer, false, f);
}
