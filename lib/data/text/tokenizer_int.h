/* lib/data/text/tokenizer_int.h -- the stages of a tokenizer: a text is cut into pieces, each of which is changed,
 * divided further, and at last given to the model. */
#ifndef OCT_DATA_TOKENIZER_INT_H
#define OCT_DATA_TOKENIZER_INT_H

#include "base/buf.h"
#include "base/json_tree.h"
#include "base/mem.h"
#include "data/text/tokenizer.h"

/* ---- pieces ---- */

typedef struct oct_piece {
    size_t from, n; /* its text */
    int64_t id;     /* of an added token; -1: still a text */
    bool first;     /* it begins where the whole text begins */
} oct_piece;

typedef struct oct_pieces {
    oct_buf text;
    oct_piece *v;
    size_t n, cap;
    bool failed; /* out of memory */
} oct_pieces;

void oct_pieces_clear(oct_pieces *p);
void oct_pieces_free(oct_pieces *p);
/* Appends a piece, which is copied. Nothing for an empty text. */
void oct_pieces_add(oct_pieces *p, const char *s, size_t n, bool first, int64_t id);

/* ---- ids ---- */

typedef struct oct_ids {
    int64_t *v;
    size_t n, cap;
    bool failed;
} oct_ids;

void oct_ids_add(oct_ids *ids, int64_t id);
void oct_ids_free(oct_ids *ids);

/* ---- patterns ---- */

/* A text that is searched for, or a regular expression. */
typedef struct oct_pattern {
    const char *text; /* NULL: a regular expression */
    size_t n;
    void *code, *match; /* PCRE2's */
} oct_pattern;

/* Reads {"String": ...} or {"Regex": ...}. The pattern belongs to the tokenizer, which frees it. */
oct_status oct_pattern_read(const oct_tree *t, oct_arena *a, oct_pattern *p, oct_err *err);
oct_status oct_pattern_compile(const char *regex, oct_pattern *p, oct_err *err);
void oct_pattern_free(oct_pattern *p);
/* The first match in t[from, n): [*a, *b). *found false: none. An empty match is passed over. */
oct_status oct_pattern_find(const oct_pattern *p, const char *t, size_t n, size_t from, size_t *a, size_t *b,
                            bool *found, oct_err *err);

/* ---- characters ---- */

bool oct_char_is_space(uint32_t c);  /* Unicode's White_Space */
bool oct_char_is_mark(uint32_t c);   /* a category M */
bool oct_char_is_number(uint32_t c); /* a category N */
bool oct_char_is_word(uint32_t c);   /* \w of Unicode's regular expressions (UTS 18, annex C) */
bool oct_char_is_punct(uint32_t c);  /* a category P, or punctuation or a symbol of ASCII */
void oct_buf_add_char(oct_buf *b, uint32_t c);

/* ---- stages ---- */

/* How a match is cut from what surrounds it. */
typedef enum oct_cut_how {
    OCT_CUT_REMOVED,
    OCT_CUT_ISOLATED,
    OCT_CUT_WITH_PREVIOUS,
    OCT_CUT_WITH_NEXT,
    OCT_CUT_CONTIGUOUS
} oct_cut_how;

typedef struct oct_stage oct_stage;
struct oct_stage {
    /* One of the two is set. change: a normalizer appends the new text. cut: a pre-tokenizer appends pieces. */
    oct_status (*change)(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err);
    oct_status (*cut)(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err);
    oct_pattern pattern;
    oct_cut_how how;
    int form;             /* of a normal form: options of utf8proc */
    bool flags[4];        /* by the stage */
    const char *text;     /* that replaces, or stands in front */
    const uint32_t *trie; /* of a precompiled map of characters */
    size_t n_trie;
    const char *mapped; /* texts that end in NUL; the last one at mapped[n_mapped - 1] */
    size_t n_mapped;
};

typedef struct oct_stages {
    oct_stage *v;
    size_t n, cap;
    oct_arena *arena;
} oct_stages;

/* Normalizers or pre-tokenizers: the member of a Sequence that lists them, and what reads one of a type. */
typedef struct oct_stage_kind {
    const char *list;
    oct_status (*read)(oct_tree *t, const char *type, oct_stages *list, oct_stage *s, oct_err *err);
} oct_stage_kind;

/* Adds a stage, or those of a Sequence; null is none. depth: 0, of Sequences in each other. */
oct_status oct_stages_read(oct_tree *t, const oct_stage_kind *kind, oct_stages *list, int depth, oct_err *err);
oct_status oct_normalizers_read(oct_tree *t, oct_stages *list, oct_err *err);
oct_status oct_splitters_read(oct_tree *t, oct_stages *list, oct_err *err);
enum { OCT_STAGES_DEEP = 16 };
/* Bytes as printable characters, by GPT-2's table. */
void oct_bytes_as_chars(const char *t, size_t n, oct_buf *out);

/* ---- words ---- */

typedef struct oct_vocab {
    struct oct_vocab_slot {
        const char *s; /* NULL: empty */
        uint32_t n;
        int32_t id;
    } *slot;
    size_t n, room; /* room is a power of two */
    oct_arena *arena;
} oct_vocab;

oct_status oct_vocab_init(oct_vocab *v, size_t most, oct_arena *a, oct_err *err);
/* Copies the text; a word that is there gets the new id. At most `most` words. */
oct_status oct_vocab_add(oct_vocab *v, const char *s, size_t n, int64_t id, oct_err *err);
int64_t oct_vocab_find(const oct_vocab *v, const char *s, size_t n); /* -1: none */
/* {"word": id, ...} */
oct_status oct_vocab_read(oct_tree *t, oct_arena *a, oct_vocab *v, oct_err *err);
/* The ids of <0x00> to <0xFF>; -1 where there is none. */
void oct_vocab_bytes(const oct_vocab *v, int64_t bytes[256]);

/* ---- U+0000 ---- */

/* Appends JSON to an empty buffer with a mark in place of each U+0000. It stays empty if there is nothing to mark. */
oct_status oct_nul_mark(const char *json, size_t n, oct_buf *to, oct_err *err);
/* The text that a text of such JSON stands for: *n bytes, the same or in the arena. NULL: out of memory. */
const char *oct_nul_plain(const char *text, size_t *n, oct_arena *a);
/* Whether a name or text in the tree has a mark. */
bool oct_nul_within(oct_tree *t);

/* ---- models ---- */

typedef struct oct_token_model oct_token_model;
struct oct_token_model {
    oct_status (*encode)(oct_token_model *m, const char *t, size_t n, oct_ids *out, oct_err *err);
    oct_arena *arena;
    oct_vocab vocab;
    int64_t unk;                 /* -1: none */
    const char *prefix, *suffix; /* "" : none */
    int64_t longest;             /* WordPiece: characters of a word */
    bool fuse_unk, byte_fallback, ignore_merges;
    int64_t bytes[256];
    void *more; /* of the model, in the arena */
    oct_buf word;
    void *work; /* grows */
    size_t n_work;
};

oct_status oct_wordpiece_read(oct_tree *t, oct_token_model *m, oct_err *err);
oct_status oct_wordlevel_read(oct_tree *t, oct_token_model *m, oct_err *err);
oct_status oct_bpe_read(oct_tree *t, oct_token_model *m, oct_err *err);
oct_status oct_unigram_read(oct_tree *t, oct_token_model *m, oct_err *err);
/* Room for `bytes` in m->work. */
oct_status oct_token_work(oct_token_model *m, size_t n, size_t each, oct_err *err);

/* ---- JSON ---- */

bool oct_tree_flag(const oct_tree *object, const char *name, bool otherwise);
/* The text of a member; "" where it is null or absent. */
const char *oct_tree_word(const oct_tree *object, const char *name);
bool oct_tree_whole(const oct_tree *t, int64_t *v); /* a whole number from 0 to INT32_MAX */

#endif
