/* lib/eval/run/output_match.h -- compares outputs that are no real numbers in fixed places: how much of the float
 * model's output another model found again. */
#ifndef OCT_EVAL_OUTPUT_MATCH_H
#define OCT_EVAL_OUTPUT_MATCH_H

#include <stddef.h>
#include <stdint.h>

/* Counts over samples; all zero is none. Both count what either model has: elements of codes, rows of sets. */
typedef struct oct_match_count {
    uint64_t found, of;
} oct_match_count;

/* Answers, element by element: ref f32[n_ref], other f32[n_other]. Where the lengths differ, what only one has was not
 * found. NaN equals nothing. */
oct_match_count oct_match_codes(const float *ref, size_t n_ref, const float *other, size_t n_other);

/* Rows as a set: ref f32[n_ref][columns], other f32[n_other][columns]. A row was found again by a row of the other,
 * which counts once, if the two differ by no more than a tenth: the root of the mean square over the columns, each
 * measured by the largest magnitude of the float model's column. Columns that have whole numbers only (classes, places)
 * must be equal. Rows are looked for first in their own place, then around it, at most OCT_MATCH_REACH rows away: the
 * work is n_ref * OCT_MATCH_REACH at most. Working memory: taken u8[n_other], scale f32[columns]. */
enum { OCT_MATCH_REACH = 1024 };
oct_match_count oct_match_rows(const float *ref, size_t n_ref, const float *other, size_t n_other, size_t columns,
                               uint8_t *taken, float *scale);

/* Puts the rows of other f32[n][columns] into the order of the nearest rows of ref f32[n][columns]: for each row of ref
 * in turn the nearest that is left, where a column counts by its largest magnitude. For what measures errors of rows
 * that values sorted. Of many rows it looks only at those near the same place, so that the work is bounded. to:
 * f32[n][columns]; taken: u8[n]. */
void oct_rows_by_nearest(const float *ref, const float *other, size_t n, size_t columns, float *to, uint8_t *taken);

#endif
