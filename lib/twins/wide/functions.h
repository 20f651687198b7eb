/* lib/twins/wide/functions.h -- functions of 16 bits by a table and lines between its numbers, as runtimes compute them
 * of activations of 16 bits. */
#ifndef OCT_TWINS_WIDE_FUNCTIONS_H
#define OCT_TWINS_WIDE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Logistic and tanh by a table of 256 numbers. 3 integers of x are 2^9 (logistic) or 2^8 (tanh) of the table's steps if
 * `multiplier` is 3 and `shift` 0: with 12 bits behind the point. multiplier 0: 3 times 2^shift. The result has 15 bits
 * behind the point. */
int32_t oct_wide_logistic(int32_t x, int32_t multiplier, int shift);
int32_t oct_wide_tanh(int32_t x, int32_t multiplier, int shift);

/* 2^15 times a function at 513 places in [from, to]: each is moved by half of what the line to the next one is off in
 * the middle. single: as a runtime has it that computes in float32. */
enum { OCT_LINES = 512 };
void oct_line_table(double (*of)(double), double from, double to, bool single, int16_t table[OCT_LINES + 1]);
/* The function of the place that an integer of 16 bits means: its upper bits choose the line, the others the place on
 * it. */
int32_t oct_on_lines(int32_t x, const int16_t table[OCT_LINES + 1]);

#endif
