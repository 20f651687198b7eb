/* lib/onnx/save.h -- the two halves of saving (inside lib/onnx only). */
#ifndef OCT_ONNX_SAVE_H
#define OCT_ONNX_SAVE_H

#include "onnx/index.h"

/* The message to write: copies of ModelProto and GraphProto whose lists live in the arena; records are shared
 * with the model's message. */
typedef struct oct_message {
    oct_arena *arena;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
} oct_message;

/* Fills msg from the model and its graph. msg->arena is given and outlives it. */
oct_status oct_message_make(const oct_model *m, oct_message *msg, oct_err *err);

/* Writes a message to an output that is open, the bytes that protobuf-c would pack; at most 1 MB is buffered in memory.
 * OCT_ENOMEM; errors of writing are kept in out. */
oct_status oct_message_write(const ProtobufCMessage *m, oct_out *out, oct_err *err);

/* Loads a model whose file has been sealed but not committed; data: the sealed file of its external data at `location`,
 * or NULL (load.c). */
oct_status oct_model_load_written(const oct_out *model, const oct_out *data, const char *location, oct_model **m,
                                  oct_err *err);

/* ---- data_pool.c ---- */

/* Tensors of external data begin at a page. */
enum { OCT_DATA_ALIGN = 4096 };

/* Where these bytes are in the file, to which they are added if it does not have them. OCT_ENOMEM; errors of writing
 * are kept until the file is committed. */
oct_status oct_data_pool_add(oct_data_pool *p, const void *data, size_t size, uint64_t *offset, oct_err *err);
/* The name of the file without its folder. */
const char *oct_data_pool_name(const oct_data_pool *p);

#endif
