/* lib/api/answer.h -- what a report says first is a list of items: what each is about, a text in plain sentences, and a
 * command that works as it stands. */
#ifndef OCT_API_ANSWER_H
#define OCT_API_ANSWER_H

#include "base/json.h"

/* Writes an item and empties both buffers; nothing without a text. command: may be NULL or empty. */
void oct_answer_item(oct_json *j, const char *about, oct_buf *text, oct_buf *command);

/* Writes the list "next": the commands of an answer, for programs. put: writes the member "answer" of the report about
 * `of`. complete: no word in the command stands for a file that is not known. */
void oct_answer_next(oct_json *j, void (*put)(const void *of, oct_json *j), const void *of);

#endif
