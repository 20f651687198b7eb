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
    bool setup; /* whether the failure stops the run, because it is not the fault of the sample */
    oct_status status;
    oct_err err;
    oct_item item;
    int64_t index, place;
    bool begins;          /* first of a recording: of a WAV file, or of the file or folder that a SPEC names */
    bool wanted;          /* whether the consumer gets it; otherwise only the visitor sees it */
    oct_source_mark mark; /* the position after it; only place and names are set */
    oct_array *out;       /* one per input */
    oct_seen picture;     /* for input picture_input; -1: no picture */
    int picture_input;
    bool *stack, *shared, *made; /* made: it follows from the token ids */
    size_t bytes;                /* of out */
} oct_slot;

typedef enum oct_role {
    OCT_ROLE_DATA,  /* samples fill it */
    OCT_ROLE_STATE, /* state: zeros, or the arrays of samples that have its name */
    OCT_ROLE_PAST,  /* a cache: empty, or the arrays of samples that have its name */
    OCT_ROLE_VALUE  /* a constant: that of value=, or zeros if no node reads the input */
} oct_role;

struct oct_source {
    oct_arena *arena;
    const oct_input_desc *inputs; /* [n_inputs], those of the model */
    size_t n_inputs, n_states;
    oct_steps *steps; /* [n_inputs] */
    oct_role *role;
    size_t *part;     /* index of the input's part among the parts of a sample; SIZE_MAX: it has none */
    oct_feed_ctx ctx; /* the inputs as readers see them: OCT_ROLE_DATA; extra: OCT_ROLE_STATE, OCT_ROLE_PAST */
    oct_visit_fn visit;
    void (*visit_done)(void *arg);
    void *visit_arg;
    int64_t last; /* index of the last sample that was taken from the ring; -2: none was taken */
    oct_leaves leaves;
    oct_labels *labels;
    const char *labels_path;
    char *text, *words;
    bool skip_bad;
    int n_threads;
    /* Which samples are chosen, and which of them this pass gives. */
    int64_t asked, total, n_chosen; /* total: number of all samples, -1 if unknown; n_chosen: number of chosen ones, as
                                       many as were asked for if total is unknown */
    bool first, hold, once;
    const int64_t *ends;              /* [n_groups]: samples up to there are chosen together */
    int64_t n_groups;                 /* 0: each alone; else `asked` counts groups, and total is known */
    int64_t group, at_group, at_part; /* the group of the next sample; the groups of the picked side and the samples of
                                         the picked part before it */
    uint64_t seed;
    size_t store_bytes;
    oct_store store;  /* of a stream */
    int64_t n_stream; /* number of samples that the stream had; 0: there is no store */
    oct_pick pick;
    int64_t n_side, n_part; /* number of samples on the picked side (chosen or not chosen), and of those in the picked
                               part; -1: unknown */
    /* State of the readers. Only one thread at a time uses it. */
    size_t leaf;
    int64_t index;
    bool fresh;                      /* whether the next sample is the first of its file or folder */
    int64_t at_side, left, n_wanted; /* number of samples of the picked side that were passed; number of samples still
                                        to be given; that number at the start */
    oct_source_mark read, from; /* after the last fetched sample; where this pass continues, place 0: at the first */
    bool from_checked, marks;   /* marks: whether the position of the reading will be asked for */
    /* The ring: samples [consumed, produced) are in slots. Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t room, arrived; /* decoding threads wait for a free slot, the consumer waits for a sample */
    pthread_t threads[OCT_SOURCE_THREADS];
    int running;
    oct_slot *slots;
    size_t depth;
    uint64_t produced, consumed;
    size_t held;             /* bytes of decoded samples */
    const oct_slot *awaited; /* the slot for which the consumer waits; NULL: it does not wait */
    bool full;               /* the ring holds enough bytes; set until it is nearly empty */
    bool fetching, ended, stop;
    atomic_bool cut; /* stops threads that wait for a command or a descriptor, too (base/stop.h) */
    /* What was given. */
    oct_source_mark taken; /* position after the last sample that left the ring */
    bool failed;
    oct_err fault;
    bool any_label;
    int picture_input; /* 1 + the input that took the last picture; 0: none so far */
    oct_seen picture;  /* the last of them */
    int64_t given, bad;
    size_t n_empty; /* caches that the first given sample left empty, and the last of these */
    const char *empty;
    bool *made;          /* [n_inputs]: of the first given sample */
    oct_sample_sum *sum; /* NULL: no digest was asked for */
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
/* Fills the inputs for which the sample has no data, after the others were decoded. */
void oct_source_fill_rest(const oct_source *s, oct_slot *t);

/* ---- source.c ---- */

/* Starts the decoding threads; ends them and empties the ring. OCT_ENOMEM if no thread can be started. */
oct_status oct_source_start(oct_source *s, oct_err *err);
void oct_source_halt(oct_source *s);
/* Waits for the next sample in order; release frees its place for another. OCT_ESTOPPED. */
oct_status oct_source_peek(oct_source *s, oct_slot **t, oct_err *err);
void oct_source_release(oct_source *s, oct_slot *t);

/* ---- source_mark.c ---- */

/* Records that the sample at place `index` was fetched or passed over. */
void oct_source_mark_read(oct_source *s, int64_t index, const char *name, bool fine);
/* To be called after the samples before the mark were passed over: checks that they are those of the mark. */
oct_status oct_source_check_mark(oct_source *s, oct_err *err);

/* ---- source_pick.c ---- */

oct_status oct_leaf_open(oct_source *s, oct_leaf *l, oct_err *err); /* nothing when it is open */
/* Keeps what is to be said of the open reader: the files that it has left out so far, and the other name of an array.
 */
void oct_leaf_note(oct_leaf *l);
void oct_leaf_close(oct_leaf *l);
void oct_leaf_rest(oct_leaf *l);                 /* the same, but for a descriptor, which cannot be opened again */
bool oct_source_keeps_open(const oct_source *s); /* files are few enough to stay open */
/* Counts the samples if the choice needs their number. Of a stream, it keeps the chosen samples. */
oct_status oct_source_count_all(oct_source *s, oct_err *err);
/* Sets what follows from the number of samples and the pick, for a new pass. */
void oct_source_start_pass(oct_source *s);
/* Fetches the next wanted sample into the slot, which also receives its faults. One thread at a time. */
void oct_source_fetch(oct_source *s, oct_slot *t);
/* Whether a failure of this kind is the fault of the sample itself. setup: as in oct_part_decode. */
bool oct_sample_is_broken(oct_status st, bool setup);
/* Whether it is left out. */
bool oct_source_skips(const oct_source *s, oct_status st, bool setup);

#endif
