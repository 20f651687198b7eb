/* tools/common/print_answer.h -- what matters of a report, in sentences. */
#ifndef OCT_TOOLS_PRINT_ANSWER_H
#define OCT_TOOLS_PRINT_ANSWER_H

#include "base/document.h"

#include <stdio.h>

/* Prints a list of items with "about", "text" and perhaps "command": the first text stands alone, the others behind
 * what they are about. All wraps at spaces, to the width of the terminal and at most 100 columns; 80 elsewhere. */
void tool_print_answer(const oct_item *answer, FILE *f);
/* The same, behind an answer: each text behind what it is about. */
void tool_print_more(const oct_item *answer, FILE *f);
/* The same for a single item: as the first, or behind a word. */
void tool_print_item(const char *about, const char *text, FILE *f);

#endif
