/* lib/api/answer.c -- items of what a report says first. */
#include "api/answer.h"

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
