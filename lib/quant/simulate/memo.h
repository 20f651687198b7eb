/* lib/quant/simulate/memo.h -- keeps measurements of a simulation in a file, so that a later run does not repeat them,
 * even if this run was ended early. */
#ifndef OCT_QUANT_MEMO_H
#define OCT_QUANT_MEMO_H

#include "eval/parts/part.h"
#include "quant/simulate/simulate.h"

typedef struct oct_memo oct_memo;

/* A key of everything on which measurements depend: the model, the job's decisions, and the samples of s. */
uint64_t oct_memo_key(const oct_conversion *c, const oct_sim *s);
/* Opens a memo and reads the file at path (borrowed), if there is one. *known: how many measurements of the key it has.
 * The file also keeps measurements of a few other recent keys. OCT_EMALFORMED: the file is of another kind; it is left
 * unchanged. OCT_EIO. In arena. */
oct_status oct_memo_open(const char *path, uint64_t key, oct_arena *arena, oct_memo **m, size_t *known, oct_err *err);
/* Opens a memo that has no file. */
oct_status oct_memo_create(uint64_t key, oct_arena *arena, oct_memo **m, oct_err *err);
bool oct_memo_find(oct_memo *m, const char *what, size_t from, size_t to, oct_sim_loss *loss);
/* what: a word that outlives the memo. The file is written from time to time. */
oct_status oct_memo_add(oct_memo *m, const char *what, size_t from, size_t to, const oct_sim_loss *loss, oct_err *err);
oct_status oct_memo_save(oct_memo *m, oct_err *err);
size_t oct_memo_asked(const oct_memo *m); /* how many measurements were found or added */

/* memo_parts.c: measurements that were made in parts. */
extern const oct_part_form oct_part_of_sensitivity;
/* Appends the key, and the measurements that were found or added, in an order that does not depend on the run. This
 * follows the records in the file of a part. */
void oct_memo_put(const oct_memo *m, oct_buf *rest);
/* Joins the measurements of all parts into a closed memo. parts: must stay open. OCT_EMALFORMED. OCT_EUSAGE: the parts
 * have different keys, or disagree. In arena. */
oct_status oct_memo_join(const oct_parts *parts, oct_arena *arena, oct_memo **m, oct_err *err);
/* For closed memos: the error that a measurement is missing, because it must not be made. OCT_EMALFORMED. */
bool oct_memo_is_closed(const oct_memo *m);
oct_status oct_memo_lacks(const oct_memo *m, const char *what, size_t from, size_t to, oct_err *err);
/* OCT_EUSAGE if the measurements are not of that key. */
oct_status oct_memo_check(const oct_memo *m, uint64_t key, oct_err *err);

#endif
