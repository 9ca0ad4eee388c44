/* Tensors: values of known dtype and shape that may not have been computed yet. Reading the elements
 * computes what they need. Several threads may use a tensor at once, computed or not; each needs a
 * reference that lasts as long (a scope, mix_retain). They compute in parallel, possibly the same operand
 * twice, and all see one value. */
#ifndef MIXTAPE_TENSOR_H
#define MIXTAPE_TENSOR_H

#include <mixtape/dtype.h>
#include <mixtape/object.h>

MIX_BEGIN_DECLARATIONS

/* A tensor with a copy of `data`: mix_shape_size(shape) elements of `dtype` in C order. A bool is one
 * byte, 0 or 1. */
MIX_API mix_tensor *mix_tensor_from(const void *data, mix_dtype dtype, mix_shape shape);
/* The same from doubles, rounded to nearest even. */
MIX_API mix_tensor *mix_tensor_from_doubles(const double *data, mix_dtype dtype, mix_shape shape);
/* A scalar constant, rounded to `dtype`. */
MIX_API mix_tensor *mix_scalar(double value, mix_dtype dtype);
/* A tensor that uses `data` without a copy. The memory must live until the library calls `release(data)`
 * (unless NULL), when nothing needs it any more. If the call fails (NULL), release is not called and the
 * caller still owns the memory.
 *
 * The caller may change the elements between its own calls, not during one. What was computed before (trained
 * with, predicted, ...) keeps its value; the tensor itself, its reshapes and what is computed later see the
 * new elements. A function that was captured with it as a constant may have either: pass it as an argument.
 * Under a tape, and on a device with memory of its own, wrap the array anew for each step. */
MIX_API mix_tensor *mix_tensor_wrap(void *data, mix_dtype dtype, mix_shape shape,
                                    void (*release)(void *data));

/* Arrays in another order: the element (i, j, ...) of `shape` is data[i * strides.dims[0] + j *
 * strides.dims[1] + ...]. Strides count elements, one for each axis. A table of R rows in column order, as
 * Fortran has it, has the strides MIX_SHAPE(1, R). */

/* A copy, by any strides: the inside of an array with a halo, every second row, a row repeated (stride 0), an
 * axis backwards (a negative stride, `data` at its last element). */
MIX_API mix_tensor *mix_tensor_from_strided(const void *data, mix_dtype dtype, mix_shape shape,
                                            mix_shape strides);
/* mix_tensor_wrap of an array whose axes lie in another order, without gaps, such as column order; ValueError
 * for other strides. It is a transposed view: a product reads it as it lies, and other uses copy it when they
 * are computed. After its elements were read once, the tensor keeps their values. */
MIX_API mix_tensor *mix_tensor_wrap_strided(void *data, mix_dtype dtype, mix_shape shape, mix_shape strides,
                                            void (*release)(void *data));

/* Dtype and shape, known before the value is. MIX_DTYPE_NONE and rank 0 for NULL. */
MIX_API mix_dtype mix_tensor_dtype(const mix_tensor *tensor);
MIX_API mix_shape mix_tensor_shape(const mix_tensor *tensor);
/* True for tensors that descend from mix_input: they have a dtype and a shape but never a value. */
MIX_API bool mix_tensor_is_symbolic(const mix_tensor *tensor);

/* The elements in C order, in the tensor's dtype; evaluates first. The pointer is borrowed and lives as
 * long as the tensor; for the value of a variable only until the next assignment to the variable (while
 * other threads assign, use mix_tensor_read). NULL with an error recorded if evaluation fails, the tensor
 * is symbolic, or a function is being captured. */
MIX_API const void *mix_tensor_data(mix_tensor *tensor);
/* Copies the elements, converted to `dtype`, into `out`. `count` must be the size of the tensor. */
MIX_API mix_status mix_tensor_read(mix_tensor *tensor, mix_dtype dtype, void *out, int64_t count);
/* The value of a tensor of one element as double; NaN with an error recorded on failure. */
MIX_API double mix_tensor_item(mix_tensor *tensor);
/* Evaluates several tensors in one plan. */
MIX_API mix_status mix_evaluate(int count, mix_tensor *const *tensors);
/* Writes a readable form, such as "<tensor float32 (3) [1, 2, 3]>", into `text` and returns it. Does not
 * evaluate. */
MIX_API const char *mix_tensor_text(const mix_tensor *tensor, char *text, size_t size);

MIX_END_DECLARATIONS
#endif
