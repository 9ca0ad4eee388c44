/* Attributes, compared, and as the text of graphs shows them: "axes=[0] keep_dims". */
#ifndef MIX_OPS_ATTRIBUTES_H
#define MIX_OPS_ATTRIBUTES_H

#include "base/text_reader.h"
#include "base/text.h"
#include "graph/op.h"

/* Nothing where the op has no attributes, or only flags that are not set. */
void mix_attributes_put(const mix_op *op, const void *attributes, mix_text *text);
/* Fills a zeroed attribute struct from all of the text. False with what is wrong in `problem`. Values are what their kinds allow
 * (shapes are known, dtypes are those of tensors); whether they fit the operands is the shape rule's to say. */
bool mix_attributes_read(const mix_op *op, void *attributes, mix_scan *scan, char *problem, size_t size);
/* Do two attribute structs of the op say the same, field by field? Bytes between fields and behind the rank of a shape may be anything.
 * Numbers are compared as bits: 0 is not -0. */
bool mix_attributes_equal(const mix_op *op, const void *a, const void *b);
/* "(2, 3)": a known shape. */
bool mix_scan_shape(mix_scan *scan, mix_shape *shape);
/* A dtype that tensors may have. */
bool mix_scan_dtype(mix_scan *scan, mix_dtype *dtype);

#endif
