/* Connectionist temporal classification (keras3). Class 0 is the blank and pads the labels (Graves et al.:
 * Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural networks,
 * ICML 2006). */
#include "base/error.h"
#include "nn/losses/loss.h"
#include "ops/table.h"

/* Stands for log(0): far below the logarithm of any probability, and finite, so that gradients are finite. */
#define LOG_ZERO (-1e30)

/* Puts a blank before, between and after the labels: (batch, labels) -> (batch, 2 labels + 1). */
static mix_tensor *with_blanks(mix_tensor *labels, int64_t batch, int64_t count) {
  mix_tensor *pairs = mix_pad(mix_expand_dims(labels, -1), MIX_SHAPE(0, 0, 1), MIX_SHAPE(0, 0, 0), 0);
  return mix_pad(mix_reshape(pairs, MIX_SHAPE(batch, 2 * count)), MIX_SHAPE(0, 0), MIX_SHAPE(0, 1), 0);
}

/* x (batch, states) shifted right by `by` states. */
static mix_tensor *shifted(mix_tensor *x, int64_t by, double fill) {
  mix_shape shape = mix_tensor_shape(x);
  mix_tensor *rest = mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(shape.dims[0], shape.dims[1] - by));
  return mix_pad(rest, MIX_SHAPE(0, by), MIX_SHAPE(0, 0), fill);
}

/* log(exp(a) + exp(b) + exp(c)) */
static mix_tensor *log_sum(mix_tensor *a, mix_tensor *b, mix_tensor *c) {
  mix_tensor *largest = mix_stop_gradient(mix_maximum(mix_maximum(a, b), c));
  mix_tensor *sum = mix_add(mix_exp(mix_subtract(a, largest)), mix_exp(mix_subtract(b, largest)));
  return mix_add(mix_log(mix_add(sum, mix_exp(mix_subtract(c, largest)))), largest);
}

/* -log of the probability of all alignments: labels (batch, labels), logits (batch, steps, classes).
 * Computes the logarithms of the paper's forward variables alpha (batch, states), section 4.1. A state is an
 * index into the labels with blanks. */
mix_tensor *mix_loss_ctc(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_shape labels = mix_tensor_shape(y_true), logits = mix_tensor_shape(y_pred);
  if (labels.rank != 2 || logits.rank != 3 || labels.dims[0] != logits.dims[0] || labels.dims[1] < 1 ||
      logits.dims[1] < 1)
    return mix_fail_value("loss %s: expects labels (batch, labels) and logits (batch, steps, classes)",
                          loss->name);
  const int64_t batch = labels.dims[0], count = labels.dims[1], steps = logits.dims[1],
                states = 2 * count + 1;
  mix_dtype given = mix_tensor_dtype(y_pred), dtype = given == MIX_FLOAT64 ? given : MIX_FLOAT32;
  /* A row of one_hot may be all 0, which would be a probability of 1: gather checks the labels. */
  mix_tensor *integers =
                 mix_gather(mix_range(0, (double)logits.dims[2], 1, MIX_INT64), mix_class_values(y_true), 0),
             *zero = mix_scalar_like(integers, 0);
  mix_tensor *symbols = with_blanks(integers, batch, count);
  /* A label may follow another one without a blank between, unless both are the same. */
  mix_tensor *skips =
      mix_logical_and(mix_not_equal(symbols, zero), mix_not_equal(symbols, shifted(symbols, 2, 0)));
  mix_tensor *emitted = mix_matmul(mix_log_softmax(mix_cast(y_pred, dtype)),
                                   mix_one_hot(symbols, logits.dims[2], dtype), false, true);
  mix_tensor *never = mix_scalar(LOG_ZERO, dtype), *alpha = NULL;
  for (int64_t t = 0; t < steps && emitted; t++) {
    mix_tensor *now = mix_slice(emitted, MIX_SHAPE(0, t, 0), MIX_SHAPE(batch, 1, states));
    now = mix_reshape(now, MIX_SHAPE(batch, states));
    if (t == 0) {
      mix_tensor *state = mix_range(0, (double)states, 1, MIX_INT64);
      alpha = mix_select(mix_less(state, mix_scalar(2, MIX_INT64)), now, never);
    } else {
      mix_tensor *skipped = mix_select(skips, shifted(alpha, 2, LOG_ZERO), never);
      alpha = mix_add(log_sum(alpha, shifted(alpha, 1, LOG_ZERO), skipped), now);
    }
  }
  mix_tensor *length = mix_reduce_sum(mix_cast(mix_not_equal(integers, zero), MIX_INT64), MIX_AXES(1), false);
  mix_tensor *last = mix_multiply(length, mix_scalar(2, MIX_INT64));
  mix_tensor *ends = mix_add(mix_one_hot(last, states, dtype),
                             mix_one_hot(mix_subtract(last, mix_scalar(1, MIX_INT64)), states, dtype));
  alpha = mix_select(mix_greater(ends, mix_scalar(0, dtype)), alpha, never);
  mix_tensor *largest = mix_stop_gradient(mix_reduce_max(alpha, MIX_AXES(1), true));
  mix_tensor *sum = mix_reduce_sum(mix_exp(mix_subtract(alpha, largest)), MIX_AXES(1), false);
  return mix_cast(mix_negative(mix_add(mix_log(sum), mix_squeeze(largest, MIX_AXES(1)))), given);
}
