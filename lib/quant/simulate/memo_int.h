/* lib/quant/simulate/memo_int.h -- internals of a memo, shared by memo.c and memo_parts.c. */
#ifndef OCT_QUANT_MEMO_INT_H
#define OCT_QUANT_MEMO_INT_H

#include "quant/simulate/memo.h"

enum { OCT_MEMO_WORD = 16, OCT_MEMO_KEYS = 8 };

typedef struct oct_memo_entry {
    uint64_t key;
    char what[OCT_MEMO_WORD];
    size_t from, to;
    oct_sim_loss loss;
    bool asked; /* it was found or added in this run */
} oct_memo_entry;

struct oct_memo {
    const char *path;       /* NULL: the memo has no file */
    const oct_parts *parts; /* the parts from which it was joined; NULL: the memo is not closed */
    oct_arena *arena;
    uint64_t key;
    uint64_t others[OCT_MEMO_KEYS]; /* the keys in the file, the latest first */
    size_t n_others;
    oct_memo_entry *e;
    size_t n, cap, saved;
    double when;
};

oct_status oct_memo_append(oct_memo *m, const oct_memo_entry *e, oct_err *err);

#endif
