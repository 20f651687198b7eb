/* provider/external.h -- constants whose elements lie in a file beside the model: they are mapped, and neither loaded
 * by ONNX Runtime nor copied. */
#ifndef OCT_PROVIDER_EXTERNAL_H
#define OCT_PROVIDER_EXTERNAL_H

#include "octet/octet.h"
#include "ort_abi.h"

/* Files that are mapped, each as a whole. The first one begins the list; NULL: none. */
typedef struct mapped_file mapped_file;

/* Sets a->data to the elements of a constant of g, whose type and shape are those of *a, if they lie in a file of as
 * many bytes at least; the file is added to *files. Otherwise a->data stays as it is: then ONNX Runtime has the
 * elements, or will tell what is wrong with the file. */
ort_status *external_find(const ort_api *api, const ort_graph *g, const ort_value_info *v, octet_array *a,
                          mapped_file **files);
/* Maps a file that lies beside a model, and adds it to *files. NULL: it cannot be, or is empty. */
const uint8_t *external_map(const char *model, const char *name, mapped_file **files, size_t *size);

/* Whether an address is in one of the files. */
bool external_has(const mapped_file *files, const void *data);
void external_free(mapped_file *files);

#endif
