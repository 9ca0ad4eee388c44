/* Elements as tensors, for steps that look into them. */
#ifndef MIX_DATA_PIPELINE_ROW_STREAM_H
#define MIX_DATA_PIPELINE_ROW_STREAM_H

#include "data/pipeline/pipeline.h"

/* Gathers the row of an element of `dataset` that has no tensors yet, into `buffers` (zeroed at first). False: error recorded. */
bool mix_element_values(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers);
/* The same in a list that nobody else holds, for functions of the caller's, which may append to it; the tensors are shared. It needs a
 * scope around this element. */
bool mix_element_own(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers);
/* Evaluates all tensors of a list that a caller's function made. False with the error recorded, also for a NULL in it. */
bool mix_element_evaluate(mix_list *values, const char *call);

/* A pass of a data set within a step that has several inputs. */
typedef struct mix_stream {
  mix_dataset *dataset; /* retained */
  mix_cursor *cursor;   /* NULL: not open */
  mix_buffers buffers;
} mix_stream;
bool mix_stream_open(mix_stream *stream, mix_dataset *dataset);
/* Elements come with tensors, whatever the data set. */
mix_pull mix_stream_next(mix_stream *stream, mix_element *element);
/* A stream that is closed, or was never opened, may be closed. */
void mix_stream_close(mix_stream *stream);

#endif
