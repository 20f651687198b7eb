/* lib/onnx/model.h -- ONNX files: loading a model into the IR and saving it back.
 *
 * What Octet does not understand stays: the message as it was read is kept beside the graph, nodes and
 * initializers refer to their records in it, and saving writes those records unless something was changed.
 * Saving a model that was not changed gives an equal message. Bytes of large tensors are views into the mapped
 * file wherever they are aligned; misaligned ones are copied, so oct_tensor.data is always aligned to its
 * element's size. The machine must be little-endian, as the format is. */
#ifndef OCT_ONNX_MODEL_H
#define OCT_ONNX_MODEL_H

#include "base/io.h"
#include "graph/graph.h"

/* The newest ONNX IR version that is read; the oldest is 3. */
enum { OCT_IR_OLDEST = 3, OCT_IR_NEWEST = 14 };

typedef struct oct_model {
    oct_graph *graph;     /* owned; a pass may put a clone here and destroy the old one later than the model's end */
    const char *path;     /* as given; "-" for standard input */
    int64_t ir_version;   /* may be raised before saving */
    const char *producer; /* "name version", "" if not stated */
    void *proto;          /* Onnx__ModelProto of onnx/onnx.pb-c.h, as read */
    oct_arena *arena;     /* holds proto and the rest of the loader's memory */
    oct_map *maps;        /* the model file, if there is one, then external data files */
    size_t n_maps, cap_maps;
    const void *data; /* the model file's bytes, without external data */
    size_t size;
    bool from_file;      /* maps[0] is the model file */
    bool other_format;   /* the file is of oct_model_format */
    const char *pending; /* borrowed: the location of external data that is not in its place yet, maps[1]; else NULL */
    char *input;         /* owned bytes of standard input, or NULL */
    bool is_copy;        /* maps and input are those of the model that it was copied from */
} oct_model;

/* Loads a model. On success *m is complete: values for inputs, initializers and node outputs, declared element
 * types and shapes (value_info) set, nodes in topological order, values captured by subgraphs recorded,
 * constants decoded, "ai.onnx" mapped to "".
 *   - An initializer that is also listed as a graph input is a constant and no input.
 *   - A sparse initializer, or one of a type that Octet has no name for, is a value without producer and
 *     without constant; its element type and shape are set. It is passed through.
 *   - Calls of model-local functions and Constant nodes stay nodes; the functions are the graph's.
 *   - Attributes that hold graphs are read like the model's graph.
 *   - External data is mapped; it must lie inside the model's folder, or inside that of the file to which the model's
 *     path is a link, or be a link to a blob of the cache of Hugging Face that the folder is part of.
 * path "-" reads standard input (external data is then looked for in the current folder).
 * OCT_EIO: cannot read (exit 3), also when external data is missing. OCT_EMALFORMED: names file and node or tensor.
 * OCT_EUNSUPPORTED: an IR version outside 3..14, a tensor of rank above 8 or in segments. OCT_ENOMEM.
 * Takes memory for everything but raw_data, unpacked, and for copies of misaligned tensors. */
oct_status oct_model_load(const char *path, oct_model **m, oct_err *err);
/* The same from memory, which is borrowed and must outlive the model. path is for messages and external data. */
oct_status oct_model_load_mem(const void *data, size_t size, const char *path, oct_model **m, oct_err *err);

/* Another format of files that hold one graph. */
typedef struct oct_model_format {
    bool (*is)(const void *data, size_t size);
    /* Fills an empty graph, whose constants may borrow from data. *maker: what the file says made it, borrowed. notes:
     * lines of text about it. */
    oct_status (*read)(const void *data, size_t size, oct_graph *g, const char **maker, oct_buf *notes, oct_err *err);
} oct_model_format;
/* The same, also of files of that format. The model is then one that was changed: saving it writes ONNX. */
oct_status oct_model_load_as(const char *path, const oct_model_format *also, oct_buf *notes, oct_model **m,
                             oct_err *err);
oct_status oct_model_load_mem_as(const void *data, size_t size, const char *path, const oct_model_format *also,
                                 oct_buf *notes, oct_model **m, oct_err *err);

/* A model of the same files, with a graph and metadata of its own. All else that was read is shared, so `m` must
 * outlive it, with its graph. */
oct_status oct_model_copy(const oct_model *m, oct_model **copy, oct_err *err);
/* Releases the graph, the message and the maps. NULL allowed. */
void oct_model_free(oct_model *m);

/* The constants will not be read soon: pages of mapped files are released until they are read. */
void oct_model_forget_all(const oct_model *m);

/* FNV-1a of the model file's bytes and then of each mapped external data file in order of first use. Reads all
 * of them: about a second for each gigabyte. */
uint64_t oct_model_hash(const oct_model *m);
/* Bytes of the files that a loaded model came from, external data included. */
uint64_t oct_model_bytes(const oct_model *m);

/* Sets a metadata entry (metadata_props), replacing one of the same key. Both strings are copied. */
oct_status oct_model_set_meta(oct_model *m, const char *key, const char *value, oct_err *err);
/* Removes the metadata entries of a key, if there are any. */
void oct_model_drop_meta(oct_model *m, const char *key);
/* The value of a metadata entry, or NULL. */
const char *oct_model_meta(const oct_model *m, const char *key);
/* The key of the i-th metadata entry; NULL: there are fewer. */
const char *oct_model_meta_key(const oct_model *m, size_t i);

/* How many inputs have an initializer, which is their default value and here a constant, where others have none;
 * *first: the name of one. 0 where each initializer is an input, as files of IR version 3 must have it. */
size_t oct_model_defaults(const oct_model *m, const char **first);

/* A file of external data for several models, in whose folder they lie: what several of them have is in it once. It is
 * written as oct_out does; a model that refers to it can be loaded when it is committed. commit and abort release it.
 */
typedef struct oct_data_pool oct_data_pool;
oct_status oct_data_pool_open(const char *path, oct_data_pool **pool, oct_err *err);
oct_status oct_data_pool_commit(oct_data_pool *pool, oct_err *err);
void oct_data_pool_abort(oct_data_pool *pool); /* NULL allowed */

typedef struct oct_save_options {
    /* Maximum size of the message; tensors beyond it go to an external data file. 0: protobuf's limit of 2^31 - 1
     * bytes. */
    uint64_t max_bytes;
    oct_data_pool *pool; /* all tensors of 1 KB and more go there, whatever the message's size; NULL: none */
} oct_save_options;

/* Writes the model to path (base/io.h, oct_out): a file takes its place when it is complete. options may be NULL.
 *
 * A graph that was not changed (graph->changed) gives the message as it was read, plus metadata. In a changed
 * one: unchanged nodes, and initializers whose constant is still the loaded tensor, keep their records, in the
 * original order; new constants follow the old ones; nodes stand in the graph's order; value_info, inputs
 * and outputs keep their records while their value lives (value_info only while its type still agrees);
 * initializers leave the inputs, and the IR version becomes at least 4, which allows that. Opsets are the
 * graph's. All else is kept.
 *
 * External data: what is written refers to no file of the model that was read, in any folder. All tensors are
 * embedded if the message then fits max_bytes. If not, tensors of 1 KB and more go to a new file beside the
 * output, OUT.<16 hex digits of the content's hash>.data, written, synced and renamed before the model is, and
 * removed again if the model then fails.
 *
 * OCT_EUSAGE: an output is the model file or one of its external data files. OCT_EIO: cannot write.
 * OCT_EUNSUPPORTED: too large for a stream. OCT_ENOMEM. Weights are written from where they are. */
oct_status oct_model_save(oct_model *m, const char *path, const oct_save_options *options, oct_err *err);
/* Total size of the files that the saved model would need, external data included. Writes nothing. OCT_ENOMEM, and
 * OCT_EIO or OCT_EMALFORMED of external data. */
oct_status oct_model_size(oct_model *m, const char *path, const oct_save_options *options, uint64_t *bytes,
                          oct_err *err);

/* The same in two steps: first the model is written under a temporary name, while the old file stays; commit then moves
 * it to its place. commit and abort release the draft. */
typedef struct oct_model_draft oct_model_draft;
oct_status oct_model_write(oct_model *m, const char *path, const oct_save_options *options, oct_model_draft **d,
                           oct_err *err);
/* Loads the draft; it must outlive *m. *m is NULL for a stream, which cannot be read back. Errors as oct_model_load. */
oct_status oct_model_draft_load(const oct_model_draft *d, oct_model **m, oct_err *err);
oct_status oct_model_draft_commit(oct_model_draft *d, oct_err *err);
void oct_model_draft_abort(oct_model_draft *d); /* NULL allowed */

/* A value in a file of its own, as those of an ONNX test case (input_0.pb). */
typedef struct oct_stored_value {
    const char *name; /* "" where the file has none */
    bool sequence;    /* its tensors are t[n]; else it is a tensor (n is 1) or an empty optional (n is 0) */
    oct_tensor **t;
    size_t n;
    oct_dtype elem; /* of a sequence: the type of its tensors, OCT_UNDEFINED where it is not stated */
} oct_stored_value;

/* Reads a serialised TensorProto, SequenceProto or OptionalProto, as the kind says, into the arena, data included.
 * Sequences are of tensors: OCT_EUNSUPPORTED for other ones, for sparse tensors, and for element types that have no
 * name here. OCT_EMALFORMED when the file holds something else. Other errors as oct_model_load. */
oct_status oct_value_load_pb(const char *path, oct_value_kind kind, oct_arena *a, oct_stored_value *v, oct_err *err);

#endif
