/* Elements as tensors, for steps that read their values or have several inputs. */
#pragma once

#include "data/pipeline/pipeline.h"

/* Gathers the row of an element of `dataset` that has no tensors yet into `buffers` (initially zeroed).
 * False: error recorded. */
bool mix_element_values(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers);
/* The same, nested as the caller gave them, in a list with no other reference, for functions of the caller,
 * which may append to it; the tensors are shared. Needs a scope that lasts for this element. */
bool mix_element_own(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers);
/* The evaluated tensors of a list that the caller's function returned, nested or not, as one list. NULL with
 * the error recorded, also for a NULL item. */
mix_list *mix_element_evaluate(mix_list *values, const char *call);

/* Adds to the pending error which element of `call` it concerns, from 0 in the order of its input. */
void mix_element_explain(const char *call, int64_t number);

/* A pass over one input of a step that has several. */
typedef struct mix_stream {
  mix_dataset *dataset; /* retained */
  mix_cursor *cursor;   /* NULL: not open */
  mix_buffers buffers;
} mix_stream;
bool mix_stream_open(mix_stream *stream, mix_dataset *dataset);
/* The elements always have tensors. */
mix_pull mix_stream_next(mix_stream *stream, mix_element *element);
/* Closing a stream that is closed or was never opened is allowed. */
void mix_stream_close(mix_stream *stream);
