/* Einstein sums: products of tensors, summed over named dimensions. */
#ifndef MIXTAPE_EINSUM_H
#define MIXTAPE_EINSUM_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* The sum of products that the equation describes (tf.einsum, numpy.einsum): "abc,cd->abd" multiplies
 * matrices in a batch. Each letter names a dimension of an operand; a letter that the result lacks is summed
 * over. A letter that occurs twice in one operand takes its diagonal. "..." stands for dimensions without
 * names, which broadcast; they are aligned at the right and must be in the result if they are in an operand.
 * Without "->" the result has the letters that occur once, in alphabetical order, after "...". Spaces are
 * ignored. Operands have one floating dtype or int32, which the result has; products accumulate in float32
 * (float64 for float64). More than two operands are multiplied from left to right. ValueError for an equation
 * that is not of this form or does not fit the shapes; TypeError for other dtypes. */
MIX_API mix_tensor *mix_einsum(const char *equation, int count, mix_tensor *const *operands);

MIX_END_DECLARATIONS
#endif
