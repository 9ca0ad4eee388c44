/* Tensors: typed values of known dtype and shape that may not have been computed yet. Reading one evaluates what it needs. Several threads
 * may use a tensor at once, computed or not, each with a reference (a scope, mix_retain) that lasts as long; they compute at the same time,
 * what two of them need maybe twice, and all see one value. */
#ifndef MIXTAPE_TENSOR_H
#define MIXTAPE_TENSOR_H

#include <mixtape/dtype.h>
#include <mixtape/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor with a copy of `data`: C order, mix_shape_size(shape) elements of `dtype`. Bool is one byte, 0 or 1. */
MIX_API mix_tensor *mix_tensor_from(const void *data, mix_dtype dtype, mix_shape shape);
/* The same from doubles, rounded to nearest even. */
MIX_API mix_tensor *mix_tensor_from_doubles(const double *data, mix_dtype dtype, mix_shape shape);
/* A scalar constant; rounded to dtype. */
MIX_API mix_tensor *mix_scalar(double value, mix_dtype dtype);
/* A tensor that uses `data` without copying it; `release(data)` is called (if not NULL) when nothing needs it any more. Until
 * then the memory must not change. Where the call fails (NULL), release is not called and the memory stays the caller's. */
MIX_API mix_tensor *mix_tensor_wrap(void *data, mix_dtype dtype, mix_shape shape, void (*release)(void *data));

/* MIX_DTYPE_NONE and rank 0 for NULL. Known before the value is. */
MIX_API mix_dtype mix_tensor_dtype(const mix_tensor *tensor);
MIX_API mix_shape mix_tensor_shape(const mix_tensor *tensor);
/* Does it descend from mix_input (a value that never exists, only its dtype and shape)? */
MIX_API bool mix_tensor_is_symbolic(const mix_tensor *tensor);

/* The elements in C order, in the tensor's own dtype; evaluates first. Borrowed: lives as long as the tensor; of a variable's value until
 * the next assignment to the variable, behind which the elements are elsewhere (mix_tensor_read copies them while others assign).
 * NULL with an error recorded if evaluation failed, the tensor is symbolic, or a function is being captured. */
MIX_API const void *mix_tensor_data(mix_tensor *tensor);
/* Copies the elements, converted, into `out` (`count` elements, which must be the tensor's size). */
MIX_API mix_status mix_tensor_read(mix_tensor *tensor, mix_dtype dtype, void *out, int64_t count);
/* The value of a tensor of one element as double; NaN with an error recorded on failure. */
MIX_API double mix_tensor_item(mix_tensor *tensor);
/* Evaluates several tensors in one plan. */
MIX_API mix_status mix_evaluate(int count, mix_tensor *const *tensors);
/* Writes a readable form ("<tensor float32 (2, 3) [[1, 2, ...") into text; evaluates nothing. */
MIX_API const char *mix_tensor_text(const mix_tensor *tensor, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
