/* Fourier transforms, parts of sequences, and connectionist temporal classification. */
#include "base/error.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <math.h>
#include <mixtape/scan.h>
#include <string.h>

#define PI 3.14159265358979323846

static int last_of(const mix_tensor *x) { return mix_operand_rank(x) - 1; }
static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* ---- transforms ---- */

enum { MOST_POINTS = 1 << 24 };
static const char length_expected[] = "a length from 1 to 2^24, of an axis of known size";

/* Real and imaginary parts, of one shape and dtype. */
static bool parts_of(const mix_operands *o, mix_tensor **parts) {
  mix_list *list = mix_operand_listed(o, "x");
  if (!list) return false;
  for (int i = 0; i < 2; i++) parts[i] = mix_list_get(list, i);
  const bool good = mix_list_count(list) == 2 && mix_operand_rank(parts[0]) == mix_operand_rank(parts[1]) &&
                    mix_operand_rank(parts[0]) && mix_dtype_is_floating(mix_tensor_dtype(parts[0]));
  return good ||
         mix_operand_refused(o, MIX_VALUE_ERROR, "x", "real and imaginary parts of one shape, floating");
}

/* x cut to so many elements of the last axis, or filled with zeros. */
static mix_tensor *fitted(mix_tensor *x, int64_t size) {
  const int axis = last_of(x);
  const int64_t now = mix_operand_size(x, axis);
  if (now == size) return x;
  if (now > size) return mix_layer_range(x, axis, 0, size, 1);
  mix_shape before = {.rank = axis + 1}, after = before;
  after.dims[axis] = size - now;
  return mix_pad(x, before, after, 0);
}

/* Along an axis of known size. */
static mix_list *transformed(const mix_operands *o, mix_tensor *const *parts, int axis, bool inverse) {
  const int last = last_of(parts[0]);
  if (axis < 0 || mix_operand_size(parts[0], axis) < 0)
    return mix_operation_fail(o, MIX_UNSUPPORTED, "the transform is along an axis whose size is unknown");
  mix_list *list =
      mix_fft(mix_axis_moved(parts[0], axis, last), mix_axis_moved(parts[1], axis, last), inverse);
  if (!list || axis == last) return list;
  mix_tensor *back[2];
  for (int i = 0; i < 2; i++) back[i] = mix_axis_moved(mix_list_get(list, i), last, axis);
  return mix_failed() ? NULL : mix_list_of(back[0], back[1]);
}
static mix_list *transform_both(const mix_operands *o, bool inverse) {
  mix_tensor *parts[2];
  if (!parts_of(o, parts)) return NULL;
  const int last = last_of(parts[0]);
  mix_list *rows = transformed(o, parts, last, inverse);
  if (!rows) return NULL;
  return transformed(o, (mix_tensor *[]){mix_list_get(rows, 0), mix_list_get(rows, 1)}, last - 1, inverse);
}
static mix_list *fft(const mix_operands *o, mix_tensor *x) {
  mix_tensor *parts[2];
  return parts_of(o, parts) ? transformed(o, parts, last_of(parts[0]), false) : NULL;
}
static mix_list *fft2(const mix_operands *o, mix_tensor *x) { return transform_both(o, false); }
static mix_list *ifft2(const mix_operands *o, mix_tensor *x) { return transform_both(o, true); }

/* The first half of the spectrum of real numbers. */
static mix_list *half_spectrum(const mix_operands *o, mix_tensor *x, int64_t size) {
  if (size < 1 || size > MOST_POINTS || !mix_operand_rank(x) || mix_operand_size(x, last_of(x)) < 0)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "fft_length", length_expected);
  x = fitted(x, size);
  mix_list *list = x ? transformed(o, (mix_tensor *[]){x, mix_zeros_like(x)}, last_of(x), false) : NULL;
  mix_tensor *half[2];
  for (int i = 0; list && i < 2; i++) half[i] = fitted(mix_list_get(list, i), size / 2 + 1);
  return list && !mix_failed() ? mix_list_of(half[0], half[1]) : NULL;
}
static mix_list *rfft(const mix_operands *o, mix_tensor *x) {
  const int64_t now = mix_operand_rank(x) ? mix_operand_size(x, last_of(x)) : -1;
  return half_spectrum(o, x, mix_operand_json(o, "fft_length") ? mix_operand_integer(o, "fft_length") : now);
}

/* Of a part of a half spectrum the whole: the rest mirrors it, of imaginary parts with the other sign. What
 * real numbers cannot have counts as 0. */
static mix_tensor *whole_spectrum(mix_tensor *x, int64_t size, bool imaginary) {
  const int axis = last_of(x);
  const int64_t half = size / 2 + 1, inner = (size - 1) / 2;
  x = fitted(x, half);
  mix_tensor *middle = inner ? mix_layer_range(x, axis, 1, inner, 1) : NULL;
  mix_tensor *mirrored = middle ? mix_flipped(middle, axis) : NULL, *pieces[4];
  int count = 0;
  mix_tensor *ends[] = {mix_layer_range(x, axis, 0, 1, 1),
                        size % 2 ? NULL : mix_layer_range(x, axis, half - 1, 1, 1)};
  for (int i = 0; i < 2; i++) {
    if (imaginary && ends[i]) ends[i] = mix_zeros_like(ends[i]);
    if (ends[i]) pieces[count++] = ends[i];
    mix_tensor *part = i ? mirrored : middle;
    if (part) pieces[count++] = i && imaginary ? mix_negative(part) : part;
    if (!i && size == 1) break;
  }
  return mix_concat(count, pieces, axis);
}
static mix_tensor *from_half_spectrum(const mix_operands *o, mix_tensor *const *parts, int64_t size) {
  const int last = last_of(parts[0]);
  if (mix_failed() || size < 1 || size > MOST_POINTS || mix_operand_size(parts[0], last) < 1)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "fft_length", length_expected);
  mix_tensor *whole[] = {whole_spectrum(parts[0], size, false), whole_spectrum(parts[1], size, true)};
  mix_list *list = mix_failed() ? NULL : transformed(o, whole, last, true);
  return list ? mix_list_get(list, 0) : NULL;
}
static mix_tensor *irfft(const mix_operands *o, mix_tensor *x) {
  mix_tensor *parts[2];
  if (!parts_of(o, parts)) return NULL;
  const int64_t natural = 2 * (mix_operand_size(parts[0], last_of(parts[0])) - 1);
  return from_half_spectrum(
      o, parts, mix_operand_json(o, "fft_length") ? mix_operand_integer(o, "fft_length") : natural);
}

/* ---- parts of sequences ---- */

/* The places of `size` elements of each part, which begin `stride` apart: int64 (count, size). */
static mix_tensor *part_places(int64_t count, int64_t size, int64_t stride) {
  mix_tensor *starts = mix_range(0, (double)(count * stride), (double)stride, MIX_INT64);
  return mix_add(mix_reshape(starts, MIX_SHAPE(count, 1)), mix_range(0, (double)size, 1, MIX_INT64));
}
static mix_tensor *parts_along_last(const mix_operands *o, mix_tensor *x, int64_t size, int64_t stride) {
  const int axis = last_of(x);
  const int64_t all = axis < 0 ? -1 : mix_operand_size(x, axis);
  if (mix_failed() || size < 1 || size > MOST_POINTS || stride < 1 || stride > MOST_POINTS || all < 0)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "sequence_length", length_expected);
  return mix_gather(x, part_places(all < size ? 0 : (all - size) / stride + 1, size, stride), axis);
}
static mix_tensor *extract_sequences(const mix_operands *o, mix_tensor *x) {
  return parts_along_last(o, x, mix_operand_integer(o, "sequence_length"),
                          mix_operand_integer(o, "sequence_stride"));
}

/* ---- short-time transforms ---- */

enum { LONGEST = 1 << 16 };

typedef struct frames {
  int64_t size, stride, length; /* of the transform */
  bool centered;
  double *window; /* of `length` numbers, of the scope */
} frames;

/* The window in the middle of the transform. */
static bool read_frames(const mix_operands *o, frames *f) {
  const json_t *window = mix_operand_json(o, "window");
  const char *name = json_string_value(window);
  *f = (frames){mix_operand_integer(o, "sequence_length"), mix_operand_integer(o, "sequence_stride"),
                mix_operand_integer(o, "fft_length"), mix_operand_flag(o, "center"), NULL};
  if (mix_failed()) return false;
  if (f->size < 1 || f->stride < 1 || f->length < f->size || f->length > LONGEST || f->stride > LONGEST)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "fft_length", "at least sequence_length, at most 65536");
  const bool hamming = name && !strcmp(name, "hamming");
  if (window && !hamming && (!name || strcmp(name, "hann")))
    return mix_operand_refused(o, MIX_UNSUPPORTED, "window", "hann, hamming or null");
  f->window = mix_scoped_memory((size_t)f->length * sizeof *f->window);
  if (!f->window) return false;
  const int64_t before = (f->length - f->size) / 2;
  const double even = hamming ? 0.54 : 0.5;
  const int64_t period = f->size - f->size % 2; /* TensorFlow's, of an odd size too */
  for (int64_t i = 0; i < f->length; i++) {
    const bool covered = i >= before && i < before + f->size;
    const double angle = period ? 2 * PI * (double)(i - before) / (double)period : PI;
    f->window[i] = !window ? 1 : covered ? even - (1 - even) * cos(angle) : 0;
  }
  return true;
}

static mix_list *stft(const mix_operands *o, mix_tensor *x) {
  frames f;
  const int axis = last_of(x);
  if (!read_frames(o, &f)) return NULL;
  if (axis < 0) return mix_operation_fail(o, MIX_VALUE_ERROR, "its operand is a scalar; expected an axis");
  const int64_t all = mix_operand_size(x, axis), half = f.length / 2;
  if (f.centered && half && all > half) { /* between its mirror images */
    mix_tensor *pieces[] = {mix_flipped(mix_layer_range(x, axis, 1, half, 1), axis), x,
                            mix_flipped(mix_layer_range(x, axis, all - 1 - half, half, 1), axis)};
    x = mix_concat(3, pieces, axis);
  } else if (f.centered && half) {
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%lld steps are too few for fft_length %lld",
                              (long long)all, (long long)f.length);
  }
  mix_tensor *window = mix_tensor_from_doubles(f.window, mix_tensor_dtype(x), MIX_SHAPE(f.length)),
             *parts = parts_along_last(o, x, f.length, f.stride);
  return parts ? half_spectrum(o, mix_multiply(parts, window), f.length) : NULL;
}

/* The window divided by the sum of the squares of all windows over each place. */
static void invert_window(frames *f) {
  for (int64_t phase = 0; phase < f->stride; phase++) {
    double sum = 0;
    for (int64_t i = phase; i < f->length; i += f->stride) sum += f->window[i] * f->window[i];
    for (int64_t i = phase; i < f->length; i += f->stride) f->window[i] /= sum;
  }
}

static mix_tensor *istft(const mix_operands *o, mix_tensor *x) {
  frames f;
  mix_tensor *pair[2];
  if (!parts_of(o, pair) || !read_frames(o, &f)) return NULL;
  const mix_shape shape = mix_tensor_shape(pair[0]);
  const int rank = shape.rank;
  const int64_t count = rank > 1 ? shape.dims[rank - 2] : -1, all = f.length + f.stride * (count - 1);
  if (count < 1)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "x", "(..., steps, frequencies) of known sizes");
  if (mix_operand_json(o, "window")) invert_window(&f);
  mix_tensor *parts = from_half_spectrum(o, pair, f.length);
  mix_tensor *window =
      parts ? mix_tensor_from_doubles(f.window, mix_tensor_dtype(parts), MIX_SHAPE(f.length)) : NULL;
  mix_axes order = {.count = rank}, back = {.count = rank - 1};
  for (int i = 0; i < rank; i++) order.axis[i] = i < 2 ? rank - 2 + i : i - 2;
  for (int i = 0; i < rank - 1; i++) back.axis[i] = i + 1 < rank - 1 ? i + 1 : 0;
  mix_tensor *moved = window ? mix_transpose(mix_multiply(parts, window), order) : NULL;
  mix_tensor *sums = mix_segment_sum(moved, part_places(count, f.length, f.stride), all);
  mix_tensor *y = rank > 2 ? mix_transpose(sums, back) : sums;
  const int64_t begin = f.centered ? f.length / 2 : 0;
  const int64_t length = mix_operand_json(o, "length") ? mix_operand_integer(o, "length")
                                                       : all - (f.centered ? begin + f.length / 2 : 0);
  if (mix_failed()) return NULL;
  if (length < 0 || length > all - begin)
    return length < 0 ? mix_operand_refused(o, MIX_VALUE_ERROR, "length", "a length inside the sequence")
                      : mix_layer_range(y, rank - 2, begin, all - begin, 1);
  return mix_layer_range(y, rank - 2, begin, length, 1);
}

/* ---- connectionist temporal classification ---- */

#define LOG_ZERO (-1e30) /* far below the logarithm of a probability; finite, so that gradients are */

/* x (batch, states) moved to the right. */
static mix_tensor *shifted(mix_tensor *x, int64_t by) {
  const mix_shape s = mix_tensor_shape(x);
  return mix_pad(mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(-1, s.dims[1] - by)), MIX_SHAPE(0, by),
                 MIX_SHAPE(0, 0), LOG_ZERO);
}
static mix_tensor *log_sum(mix_tensor *a, mix_tensor *b) {
  mix_tensor *most = mix_stop_gradient(mix_maximum(a, b));
  return mix_add(mix_log(mix_add(mix_exp(mix_subtract(a, most)), mix_exp(mix_subtract(b, most)))), most);
}
/* Inputs: logarithms of what each state emits (batch, states), and is the step part of the sequence? */
static mix_list *next_alpha(void *context, mix_list *carry, mix_list *inputs) {
  mix_tensor *alpha = mix_list_get(carry, 0), *skips = context, *skipped = shifted(alpha, 2);
  skipped = mix_select(skips, skipped, number(skipped, LOG_ZERO));
  mix_tensor *next = mix_add(log_sum(log_sum(alpha, shifted(alpha, 1)), skipped), mix_list_get(inputs, 0));
  mix_tensor *y = mix_select(mix_list_get(inputs, 1), next, alpha);
  return mix_failed() ? NULL : mix_list_of(mix_list_of(y), mix_list_new(0, NULL));
}

/* Graves et al.: Connectionist temporal classification, 2006, section 4.1: the forward variables of the
 * labels with a blank before, between and after them. */
static mix_tensor *ctc_loss(const mix_operands *o, mix_tensor *target) {
  mix_tensor *logits = mix_operand(o, "output"),
             *label_length = mix_cast(mix_operand(o, "target_length"), MIX_INT64),
             *length = mix_cast(mix_operand(o, "output_length"), MIX_INT64);
  const int64_t blank = mix_operand_integer(o, "mask_index");
  if (mix_failed()) return NULL;
  const mix_shape of_labels = mix_tensor_shape(target), shape = mix_tensor_shape(logits);
  if (of_labels.rank != 2 || shape.rank != 3 || of_labels.dims[1] < 1 || shape.dims[1] < 1 ||
      shape.dims[2] < 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR,
                              "expected target (batch, labels), output (batch, steps, classes)");
  if (shape.dims[0] < 0 || of_labels.dims[0] < 0) /* of shapes alone */
    return mix_open_result(mix_cast(logits, mix_widened(mix_tensor_dtype(logits))), MIX_SHAPE(shape.dims[0]));
  const int64_t batch = shape.dims[0], count = of_labels.dims[1], states = 2 * count + 1,
                steps = shape.dims[1];
  const mix_dtype dtype = mix_widened(mix_tensor_dtype(logits));
  mix_tensor *labels = mix_expand_dims(mix_cast(target, MIX_INT64), 2);
  mix_tensor *pairs = mix_pad(labels, MIX_SHAPE(0, 0, 1), MIX_SHAPE(0, 0, 0), (double)blank);
  mix_tensor *symbols = mix_pad(mix_reshape(pairs, MIX_SHAPE(batch, 2 * count)), MIX_SHAPE(0, 0),
                                MIX_SHAPE(0, 1), (double)blank);
  mix_tensor *before = mix_pad(mix_slice(symbols, MIX_SHAPE(0, 0), MIX_SHAPE(-1, states - 2)),
                               MIX_SHAPE(0, 2), MIX_SHAPE(0, 0), (double)blank);
  mix_tensor *skips =
      mix_logical_and(mix_not_equal(symbols, number(symbols, (double)blank)), mix_not_equal(symbols, before));
  mix_tensor *wide = mix_broadcast_to(mix_expand_dims(symbols, 1), MIX_SHAPE(batch, steps, states));
  mix_tensor *emitted = mix_take_along_axis(mix_log_softmax(mix_cast(logits, dtype)), wide, 2);
  mix_tensor *time = mix_reshape(mix_range(0, (double)steps, 1, MIX_INT64), MIX_SHAPE(steps, 1)),
             *state = mix_range(0, (double)states, 1, MIX_INT64);
  mix_tensor *valid = mix_expand_dims(mix_less(time, length), 2);
  emitted = mix_transpose(emitted, MIX_AXES(1, 0, 2));
  /* before the first step: state -1, from which the first two states come */
  mix_tensor *never = mix_scalar(LOG_ZERO, dtype);
  mix_tensor *first = mix_select(mix_equal(state, number(state, 0)), mix_scalar(0, dtype), never);
  mix_tensor *start = mix_add(first, mix_fill(MIX_SHAPE(batch, states), 0, dtype));
  mix_list *results =
      mix_failed() ? NULL : mix_scan(next_alpha, skips, mix_list_of(start), mix_list_of(emitted, valid));
  if (!results) return NULL;
  mix_tensor *alpha = mix_list_get(mix_list_get(results, 0), 0),
             *end = mix_times(mix_expand_dims(label_length, 1), 2);
  mix_tensor *is_end = mix_logical_or(mix_equal(state, end), mix_equal(state, mix_plus(end, -1)));
  alpha = mix_select(is_end, alpha, never);
  mix_tensor *most = mix_stop_gradient(mix_reduce_max(alpha, MIX_AXES(1), true));
  mix_tensor *sum = mix_reduce_sum(mix_exp(mix_subtract(alpha, most)), MIX_AXES(1), false);
  return mix_negative(mix_add(mix_log(sum), mix_squeeze(most, MIX_AXES(1))));
}

/* The best class of each step, without repetitions and blanks, which come behind the others as -1. */
static mix_list *ctc_decode(const mix_operands *o, mix_tensor *x) {
  const char *strategy = mix_operand_text(o, "strategy");
  const bool merged = mix_operand_flag(o, "merge_repeated");
  const double blank = (double)mix_operand_integer(o, "mask_index");
  mix_tensor *length = mix_cast(mix_operand(o, "sequence_lengths"), MIX_INT32);
  if (mix_failed()) return NULL;
  if (strcmp(strategy, "greedy")) return mix_operand_refused(o, MIX_UNSUPPORTED, "strategy", "greedy");
  const mix_shape s = mix_tensor_shape(x);
  if (s.rank != 3 || s.dims[1] < 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected inputs (batch, steps, classes) of known steps");
  mix_tensor *best = mix_cast(mix_argmax(x, 2), MIX_INT32),
             *time = mix_range(0, (double)s.dims[1], 1, MIX_INT32);
  mix_tensor *valid = mix_less(time, mix_expand_dims(length, 1));
  mix_tensor *before = mix_pad(mix_slice(best, MIX_SHAPE(0, 0), MIX_SHAPE(-1, s.dims[1] - 1)),
                               MIX_SHAPE(0, 1), MIX_SHAPE(0, 0), -1);
  mix_tensor *kept = mix_logical_and(valid, mix_not_equal(best, number(best, blank)));
  if (merged) kept = mix_logical_and(kept, mix_not_equal(best, before));
  mix_tensor *order = mix_argsort(kept, 1, true), *values = mix_select(kept, best, number(best, -1));
  mix_tensor *most = mix_reduce_max(mix_cast(x, mix_widened(mix_tensor_dtype(x))), MIX_AXES(2), false);
  mix_tensor *score = mix_reduce_sum(mix_select(valid, most, number(most, 0)), MIX_AXES(1), true);
  mix_tensor *decoded = mix_expand_dims(mix_take_along_axis(values, order, 1), 0);
  return mix_failed() ? NULL : mix_list_of(decoded, mix_negative(score));
}

/* ---- the table ---- */

#define OF_PARTS(name, options, ...)                                                                         \
  MIX_KERAS_OPERATION(name, "math", "x", options, .bare = true, __VA_ARGS__)
#define FRAMES "sequence_length sequence_stride fft_length window=\"hann\" center=true"

const mix_keras_operation mix_keras_signal_operations[] = {
    OF_PARTS("FFT", "", .results = fft),
    OF_PARTS("FFT2", "", .results = fft2),
    OF_PARTS("IFFT2", "", .results = ifft2),
    OF_PARTS("IRFFT", "fft_length", .build = irfft),
    OF_PARTS("ISTFT", FRAMES " length", .build = istft),
    MIX_KERAS_OPERATION("RFFT", "math", "x", "fft_length", .results = rfft),
    MIX_KERAS_OPERATION("STFT", "math", "x", FRAMES, .results = stft),
    MIX_KERAS_OPERATION("ExtractSequences", "math", "x", "sequence_length sequence_stride",
                        .build = extract_sequences),
    MIX_KERAS_OPERATION("CTCLoss", "nn", "target output target_length output_length", "mask_index=0",
                        .build = ctc_loss),
    MIX_KERAS_OPERATION("CTCDecode", "nn", "inputs sequence_lengths",
                        "strategy=\"greedy\" beam_width=100 top_paths=1 merge_repeated=true mask_index=0",
                        .results = ctc_decode),
    {.operation = {0}}};
