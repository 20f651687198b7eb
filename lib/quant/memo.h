/* lib/quant/memo.h -- measurements of a simulation that a file keeps, so that a later run, or one that was ended, does not make them again. */
#ifndef OCT_QUANT_MEMO_H
#define OCT_QUANT_MEMO_H

#include "eval/part.h"
#include "quant/simulate.h"

typedef struct oct_memo oct_memo;

/* What measurements depend on: the model, the job's decisions, the samples of s. */
uint64_t oct_memo_key(const oct_conversion *c, const oct_sim *s);
/* Reads the file at path (borrowed) where there is one; *known: how many measurements of the key it has. Those of the latest few other keys stay in
 * it. OCT_EMALFORMED for a file of another kind, which is left as it is; OCT_EIO. In arena. */
oct_status oct_memo_open(const char *path, uint64_t key, oct_arena *arena, oct_memo **m, size_t *known, oct_err *err);
/* One without a file. */
oct_status oct_memo_create(uint64_t key, oct_arena *arena, oct_memo **m, oct_err *err);
bool oct_memo_find(oct_memo *m, const char *what, size_t from, size_t to, oct_sim_loss *loss);
/* what: a word that stays. Writes the file from time to time. */
oct_status oct_memo_add(oct_memo *m, const char *what, size_t from, size_t to, const oct_sim_loss *loss, oct_err *err);
oct_status oct_memo_save(oct_memo *m, oct_err *err);
size_t oct_memo_asked(const oct_memo *m); /* measurements that were found or added */

/* memo_parts.c: a memo in parts. */
extern const oct_part_form oct_part_of_sensitivity;
/* Appends what a part's file has behind its records: the key, and the measurements that were found or added, in an order of their own. */
void oct_memo_put(const oct_memo *m, oct_buf *rest);
/* The measurements of all parts; the memo is closed. parts: must stay open. OCT_EMALFORMED; OCT_EUSAGE where parts are of different keys, or disagree. In
 * arena. */
oct_status oct_memo_join(const oct_parts *parts, oct_arena *arena, oct_memo **m, oct_err *err);
/* Closed: what it lacks is not to be measured. OCT_EMALFORMED, in words. */
bool oct_memo_is_closed(const oct_memo *m);
oct_status oct_memo_lacks(const oct_memo *m, const char *what, size_t from, size_t to, oct_err *err);
/* OCT_EUSAGE where its measurements are not of that key. */
oct_status oct_memo_check(const oct_memo *m, uint64_t key, oct_err *err);

#endif
