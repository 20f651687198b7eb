/* Prints the tables of docs/formats.md and docs/metrics.md that are made from the program's own lists, the words of
 * target files and the built-in rules for outputs: lines of the table's name, a tab and the table's line
 * (tests/generate/formats). */
#include <stdio.h>

#include "eval/sets/decode.h"

int main(void)
{
    puts("target keys\t| key | value |\ntarget keys\t| --- | --- |");
#define OCT_TARGET_KEY(word, function, lines, sentence) puts("target keys\t| `" word "` | " sentence " |");
#define OCT_TARGET_CHOICE(word, type, member, what, sentence, ...) puts("target keys\t| `" word "` | " sentence " |");
#include "targets/target_words.inc"
    puts("target forms\t| form | how the operator runs |\ntarget forms\t| --- | --- |");
#define OCT_TARGET_FORM(word, form, sentence) puts("target forms\t| `" word "` | " sentence " |");
#define OCT_TARGET_ALONE(word, member, sentence) puts("target forms\t| `" word "` | " sentence " |");
#include "targets/target_words.inc"
    puts("target properties\t| property | what it says |\ntarget properties\t| --- | --- |");
#define OCT_TARGET_PROPERTY(word, member, sentence) puts("target properties\t| `" word "` | " sentence " |");
#define OCT_TARGET_CONDITION(word, value, sentence) puts("target properties\t| `" word " " value "` | " sentence " |");
#include "targets/target_words.inc"
    puts("decode rules\t| rule | what the outputs are |\ndecode rules\t| --- | --- |");
    const char *name, *summary;
    for (size_t i = 0; (name = oct_decode_builtin(i, &summary)); i++)
        printf("decode rules\t| `%s` | %s |\n", name, summary);
    return 0;
}
