/* Attribute structs: comparison, and the text form used in graphs: "axes=[0] keep_dims". */
#pragma once

#include "base/text_reader.h"
#include "base/text.h"
#include "graph/op.h"

/* Writes nothing if the op has no attributes, or only flags that are not set. */
void mix_attributes_put(const mix_op *op, const void *attributes, mix_text *text);
/* Fills a zeroed attribute struct from the whole text. Returns false with the reason in `problem`. Values
 * are checked against their kinds only: shapes are known, dtypes are those of tensors. The shape rule
 * checks them against the operands. */
bool mix_attributes_read(const mix_op *op, void *attributes, mix_scan *scan, char *problem, size_t size);
/* Compares two attribute structs of the op field by field. Padding and the dimensions beyond a shape's
 * rank are ignored. Numbers are compared as bits: 0 is not -0. */
bool mix_attributes_equal(const mix_op *op, const void *a, const void *b);
/* A known shape: "(2, 3)". */
bool mix_scan_shape(mix_scan *scan, mix_shape *shape);
/* A dtype that tensors may have. */
bool mix_scan_dtype(mix_scan *scan, mix_dtype *dtype);
