/* lib/quant/simulate/memo.h -- keeps measurements of a simulation in a file, so that a later run does not repeat them,
 * even if this run was ended early. */
#ifndef OCT_QUANT_MEMO_H
#define OCT_QUANT_MEMO_H

#include "quant/simulate/simulate.h"

typedef struct oct_memo oct_memo;

/* A key of everything on which measurements depend: the model, the job's decisions, and the samples of s. */
uint64_t oct_memo_key(const oct_conversion *c, const oct_sim *s);
/* Opens a memo and reads the file at path (borrowed), if there is one. *known: how many measurements of the key it has.
 * The file also keeps measurements of a few other recent keys. OCT_EMALFORMED: the file is of another kind; it is left
 * unchanged. OCT_EIO. In arena. */
oct_status oct_memo_open(const char *path, uint64_t key, oct_arena *arena, oct_memo **m, size_t *known, oct_err *err);
bool oct_memo_find(const oct_memo *m, const char *what, size_t from, size_t to, oct_sim_loss *loss);
/* what: a word that outlives the memo. The file is written from time to time. */
oct_status oct_memo_add(oct_memo *m, const char *what, size_t from, size_t to, const oct_sim_loss *loss, oct_err *err);
oct_status oct_memo_save(oct_memo *m, oct_err *err);

#endif
