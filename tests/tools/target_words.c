/* Prints the tables of docs/formats.md that are made from the list of the words of target files: lines of the table's
 * name, a tab and the table's line (tests/generate/formats). */
#include <stdio.h>

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
    return 0;
}
