/* lib/api/answer.c -- items of what a report says first. */
#include "api/answer.h"

#include "base/document.h"

#include <string.h>

void oct_answer_item(oct_json *j, const char *about, oct_buf *text, oct_buf *command)
{
    if (text->len) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "about", about);
        oct_json_str(j, "text", oct_buf_str(text));
        if (command && command->len)
            oct_json_str(j, "command", oct_buf_str(command));
        oct_json_close(j);
    }
    oct_buf_cut(text, 0);
    if (command)
        oct_buf_cut(command, 0);
}

/* The words that stand for files which are not known begin one of the command. */
static bool is_complete(const char *command)
{
    static const char *const words[] = { " PHOTOS/", " SAMPLES.np",  " TRUTH.json",
                                         " PARTS",   " WHOLE.calib", " --runner COMMAND" };
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (strstr(command, words[i]))
            return false;
    return true;
}

void oct_answer_next(oct_json *j, void (*put)(const void *of, oct_json *j), const void *of)
{
    oct_document *d = oct_document_create();
    oct_json answer = { .to = d };
    if (d) {
        oct_json_open(&answer, NULL, '{');
        put(of, &answer);
        oct_json_close(&answer);
    }
    oct_json_open(j, "next", '[');
    for (const oct_item *x = NULL; (x = oct_item_next(oct_item_at(oct_document_root(d), "answer"), x));) {
        const char *command = oct_item_text(x, "command");
        if (!command)
            continue;
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "about", oct_item_text(x, "about"));
        oct_json_str(j, "command", command);
        oct_json_bool(j, "complete", is_complete(command));
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_document_destroy(d);
}
