/* lib/data/source/source_int.h -- what the files of a source share: the stream's state, and the steps that one file
 * does for another.
 *
 *   source.c         opening, decoding threads, what is known
 *   source_pick.c    which samples are chosen, and the next of them from the readers
 *   source_batch.c   samples joined to batches
 *   source_mark.c    where a reading stands, and going on from there
 *   source_roles.c   which inputs samples fill, and what the others hold */
#ifndef OCT_DATA_SOURCE_INT_H
#define OCT_DATA_SOURCE_INT_H

#include "data/text/labels.h"
#include "data/source/sample_sum.h"
#include "data/readers/spec.h"
#include "data/source/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { OCT_SOURCE_THREADS = 16, OCT_SOURCE_BAD_TEXTS = 100 };

typedef struct oct_slot {
    bool done, end;
    bool setup; /* the failure is not the sample's: it stops the run */
    oct_status status;
    oct_err err;
    oct_item item;
    int64_t index, place;
    bool begins;              /* the first of a recording: of a WAV file, else of a file or folder that a SPEC names */
    bool wanted;              /* it is given; else it is shown to the visitor alone */
    oct_source_mark mark;     /* behind it; place and names alone */
    oct_array *out;           /* one per input */
    oct_picture_size picture; /* of input picture_input; -1: none was one */
    int picture_input;
    bool *stack, *shared;
    size_t bytes; /* of out */
} oct_slot;

typedef enum oct_role {
    OCT_ROLE_DATA,  /* samples fill it */
    OCT_ROLE_STATE, /* zeros, or what samples have for it */
    OCT_ROLE_VALUE  /* value=; zeros where nothing reads it */
} oct_role;

struct oct_source {
    oct_arena *arena;
    const oct_input_desc *inputs; /* [n_inputs], those of the model */
    size_t n_inputs, n_states;
    oct_steps *steps; /* [n_inputs] */
    oct_role *role;
    size_t *part;     /* which part of a sample is for the input; SIZE_MAX: none */
    oct_feed_ctx ctx; /* as readers see them: those of OCT_ROLE_DATA; extra: of OCT_ROLE_STATE */
    oct_visit_fn visit;
    void (*visit_done)(void *arg);
    void *visit_arg;
    int64_t last; /* index of the sample that was taken from the ring last, -2: of none */
    oct_leaves leaves;
    oct_labels *labels;
    const char *labels_path;
    char *text, *words;
    bool skip_bad;
    int n_threads;
    /* Which samples are chosen, and which of them this pass gives. */
    int64_t asked, total, n_chosen; /* total: of all, -1 when not known; n_chosen: then as many as are asked for */
    bool first, hold, once;
    uint64_t seed;
    size_t store_bytes;
    oct_store store;  /* of a stream */
    int64_t n_stream; /* samples that it had; 0: there is no store */
    oct_pick pick;
    int64_t n_side, n_part; /* of the side that is picked, and of these in its part; -1: not known */
    /* The readers' side; one thread at a time. */
    size_t leaf;
    int64_t index;
    bool fresh;                      /* the next sample is the first of its leaf */
    int64_t at_side, left, n_wanted; /* how many of the side came by; still to be given; were to be given */
    oct_source_mark read,
        from; /* behind the sample that was fetched last; where this pass goes on, place 0: at the first sample */
    bool from_checked, marks; /* marks: somebody asks where the reading stands */
    /* The ring: samples [consumed, produced) are in slots. Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t room, arrived; /* decoding threads wait for room, the consumer for what arrives */
    pthread_t threads[OCT_SOURCE_THREADS];
    int running;
    oct_slot *slots;
    size_t depth;
    uint64_t produced, consumed;
    size_t held;             /* bytes of decoded samples */
    const oct_slot *awaited; /* by the consumer, that waits; NULL: it does not */
    bool full;               /* stays so until it has become low */
    bool fetching, ended, stop;
    atomic_bool cut; /* threads that wait for a command or a descriptor end that, too (base/stop.h) */
    /* What was given. */
    oct_source_mark taken; /* behind the sample that left the ring last */
    bool failed;
    oct_err fault;
    bool any_label;
    int picture_input; /* 1 + the first that took a picture; 0: none yet */
    int64_t given, bad;
    oct_sample_sum *sum; /* NULL: nobody asked for it */
    char *bad_text[OCT_SOURCE_BAD_TEXTS];
    int64_t bad_index[OCT_SOURCE_BAD_TEXTS];
    char bad_hint[sizeof((oct_err *)0)->hint]; /* of the first */
};

/* Parts of a sample. */
static inline size_t oct_source_parts(const oct_source *s)
{
    return s->ctx.n + s->ctx.n_extra;
}

/* ---- source_roles.c ---- */

/* Gives each input its role, and readers their view. Steps are parsed; those of inputs that samples do not fill are
 * dropped. */
oct_status oct_source_assign(oct_source *s, const oct_source_options *o, oct_err *err);
/* The inputs that the sample has nothing for, once the others are decoded. */
void oct_source_fill_rest(const oct_source *s, oct_slot *t);

/* ---- source.c ---- */

/* Decoding threads are started, and ended with the ring empty. OCT_ENOMEM when none can be started. */
oct_status oct_source_start(oct_source *s, oct_err *err);
void oct_source_halt(oct_source *s);
/* Waits for the next sample in order; release frees its place for another. OCT_ESTOPPED. */
oct_status oct_source_peek(oct_source *s, oct_slot **t, oct_err *err);
void oct_source_release(oct_source *s, oct_slot *t);

/* ---- source_mark.c ---- */

/* Enters a sample that was fetched, or passed over, at place `index`. */
void oct_source_mark_read(oct_source *s, int64_t index, const char *name, bool fine);
/* Where the samples that are passed over have ended: whether they are those of the mark. */
oct_status oct_source_check_mark(oct_source *s, oct_err *err);

/* ---- source_pick.c ---- */

oct_status oct_leaf_open(oct_source *s, oct_leaf *l, oct_err *err); /* nothing when it is open */
/* Keeps what the open reader has left out so far. */
void oct_leaf_note(oct_leaf *l);
void oct_leaf_close(oct_leaf *l);
void oct_leaf_rest(oct_leaf *l);                 /* the same, but for a descriptor, which cannot be opened again */
bool oct_source_keeps_open(const oct_source *s); /* files are few enough to stay open */
/* Finds how many samples there are, as far as the choice needs it; of a stream, keeps those that are chosen. */
oct_status oct_source_count_all(oct_source *s, oct_err *err);
/* Sets what follows from the number of samples and the pick, for a new pass. */
void oct_source_settle(oct_source *s);
/* The next sample that is wanted into the slot; faults are the slot's. One thread at a time. */
void oct_source_fetch(oct_source *s, oct_slot *t);
/* Whether a sample that failed so is at fault itself. setup: as in oct_part_decode. */
bool oct_sample_is_broken(oct_status st, bool setup);
/* Whether it is left out. */
bool oct_source_skips(const oct_source *s, oct_status st, bool setup);

#endif
