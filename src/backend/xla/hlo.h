/* Statements of StableHLO, appended to a text one after the other. Each gives a value, whose dtype may also
 * be one of the unsigned integers that tensors do not have. */
#pragma once

#include "base/text.h"
#include "tensor/type.h"

typedef struct mix_hlo {
  MIX_TYPE_MEMBERS;
  int number, part; /* %number#part; part -1: the only result of its statement */
} mix_hlo;

typedef struct mix_hlo_writer {
  mix_text text;
  int next;   /* number */
  int indent; /* regions that are open */
} mix_hlo_writer;

/* Begins a line. */
void mix_hlo_line(mix_hlo_writer *w);
void mix_hlo_put(mix_hlo_writer *w, mix_hlo x);
void mix_hlo_put_type(mix_hlo_writer *w, mix_type type);
/* `before`, then "[1, 2]". */
void mix_hlo_put_numbers(mix_hlo_writer *w, const char *before, int count, const int64_t *numbers);
/* A value that the caller's text defines. */
mix_hlo mix_hlo_new(mix_hlo_writer *w, mix_type type);

/* ---- constants ---- */

/* The number, cast to the dtype, in every element. */
mix_hlo mix_hlo_number(mix_hlo_writer *w, mix_type type, double number);
mix_hlo mix_hlo_whole(mix_hlo_writer *w, mix_type type, int64_t number);
/* Like x. */
mix_hlo mix_hlo_like(mix_hlo_writer *w, mix_hlo x, double number);
/* From the bytes of a value in memory. */
mix_hlo mix_hlo_constant(mix_hlo_writer *w, mix_type type, const void *data);
/* 0, 1, 2, ... along an axis. */
mix_hlo mix_hlo_iota(mix_hlo_writer *w, mix_type type, int axis);

/* ---- element-wise; operands have one shape ---- */

mix_hlo mix_hlo_unary(mix_hlo_writer *w, const char *op, mix_hlo x);
mix_hlo mix_hlo_binary(mix_hlo_writer *w, const char *op, mix_hlo a, mix_hlo b);
/* "EQ", "NE", "LT", "LE", "GT", "GE" */
mix_hlo mix_hlo_compare(mix_hlo_writer *w, const char *how, mix_hlo a, mix_hlo b);
/* The condition may be a scalar. */
mix_hlo mix_hlo_select(mix_hlo_writer *w, mix_hlo condition, mix_hlo a, mix_hlo b);
/* x, which is not ready before `after` is, and merges with nothing. */
mix_hlo mix_hlo_barrier(mix_hlo_writer *w, mix_hlo x, mix_hlo after);
mix_hlo mix_hlo_is_finite(mix_hlo_writer *w, mix_hlo x);
/* x itself if it has the dtype. */
mix_hlo mix_hlo_convert(mix_hlo_writer *w, mix_hlo x, mix_dtype dtype);
/* The same bits. */
mix_hlo mix_hlo_bits(mix_hlo_writer *w, mix_hlo x, mix_dtype dtype);
/* Where sizes of elements differ, the smaller ones have a last axis more. */
mix_hlo mix_hlo_bits_as(mix_hlo_writer *w, mix_hlo x, mix_type type);
static inline mix_hlo mix_hlo_add(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  return mix_hlo_binary(w, "add", a, b);
}
static inline mix_hlo mix_hlo_subtract(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  return mix_hlo_binary(w, "subtract", a, b);
}
static inline mix_hlo mix_hlo_multiply(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  return mix_hlo_binary(w, "multiply", a, b);
}
static inline mix_hlo mix_hlo_divide(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  return mix_hlo_binary(w, "divide", a, b);
}
static inline mix_hlo mix_hlo_and(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  return mix_hlo_binary(w, "and", a, b);
}
static inline mix_hlo mix_hlo_not(mix_hlo_writer *w, mix_hlo a) { return mix_hlo_unary(w, "not", a); }

/* ---- shapes; x itself if nothing changes ---- */

mix_hlo mix_hlo_reshape(mix_hlo_writer *w, mix_hlo x, mix_shape shape);
/* As NumPy broadcasts. */
mix_hlo mix_hlo_broadcast(mix_hlo_writer *w, mix_hlo x, mix_shape shape);
/* Axis i of x is axis axes[i] of the shape. */
mix_hlo mix_hlo_broadcast_along(mix_hlo_writer *w, mix_hlo x, mix_shape shape, const int *axes);
mix_hlo mix_hlo_transpose(mix_hlo_writer *w, mix_hlo x, const int *permutation);
mix_hlo mix_hlo_slice(mix_hlo_writer *w, mix_hlo x, const int64_t *begin, const int64_t *end,
                      const int64_t *strides);
/* With `value`, a scalar; interior NULL: none. Negative paddings cut. */
mix_hlo mix_hlo_pad(mix_hlo_writer *w, mix_hlo x, mix_hlo value, const int64_t *low, const int64_t *high,
                    const int64_t *interior);
mix_hlo mix_hlo_concatenate(mix_hlo_writer *w, int count, const mix_hlo *xs, int axis);
mix_hlo mix_hlo_reverse(mix_hlo_writer *w, mix_hlo x, int count, const int *axes);

/* ---- sums and indices ---- */

/* By "add", "multiply", "maximum", "minimum", "and" or "or", from `first`, a scalar; drops the axes. */
mix_hlo mix_hlo_reduce(mix_hlo_writer *w, const char *op, mix_hlo x, double first, int count,
                       const int *axes);
mix_hlo mix_hlo_reduce_last(mix_hlo_writer *w, const char *op, mix_hlo x, double first);
mix_hlo mix_hlo_reduce_all(mix_hlo_writer *w, const char *op, mix_hlo x, double first);
/* Windows of `size` elements, with paddings. */
mix_hlo mix_hlo_reduce_window(mix_hlo_writer *w, const char *op, mix_hlo x, double first, const int64_t *size,
                              const int64_t *strides, const int64_t *low, const int64_t *high);
typedef struct mix_hlo_dot {
  int batch_count, contracted_count;
  int batch[2][MIX_MAX_RANK], contracted[2][MIX_MAX_RANK]; /* axes of a and b */
  const char *precision;                                   /* NULL: the plug-in's */
} mix_hlo_dot;
/* The axes of the batch, the others of a, the others of b. */
mix_hlo mix_hlo_dot_general(mix_hlo_writer *w, mix_hlo a, mix_hlo b, const mix_hlo_dot *dot,
                            mix_dtype result);
/* Slices of one element along the axis: x with that axis replaced by those of the indices, which are in
 * range. */
mix_hlo mix_hlo_take(mix_hlo_writer *w, mix_hlo x, mix_hlo indices, int axis);
/* x with updates (count, ...) combined into its slices along axis 0 by "add", "minimum" or, by NULL, put in
 * their place. Indices outside are ignored. */
mix_hlo mix_hlo_scatter(mix_hlo_writer *w, const char *op, mix_hlo x, mix_hlo indices, mix_hlo updates);
/* Row `row`, an int32 scalar, of axis 0, which is dropped; and x with that row replaced. */
mix_hlo mix_hlo_row(mix_hlo_writer *w, mix_hlo x, mix_hlo row);
mix_hlo mix_hlo_put_row(mix_hlo_writer *w, mix_hlo x, mix_hlo update, mix_hlo row);

/* ---- loops ---- */

/* `while (condition) body` on a state of `count` values, in `state`; the caller writes the statements:
 * begin, the condition, then "do" with its value, the body, and end with the next state. Between begin and
 * end `state` has the values of a step, afterwards the last ones. */
typedef struct mix_hlo_loop {
  int number, count;
  mix_hlo *state;
} mix_hlo_loop;
mix_hlo_loop mix_hlo_while(mix_hlo_writer *w, int count, mix_hlo *state);
void mix_hlo_do(mix_hlo_writer *w, mix_hlo condition);
void mix_hlo_end(mix_hlo_writer *w, mix_hlo_loop *loop, const mix_hlo *next);

static inline mix_type mix_type_of(mix_dtype dtype, mix_shape shape) { return (mix_type){dtype, shape}; }
