/* The activation functions, composed of operations (docs/spec/keras.md, section 8). */
#include "nn/layers/activation_functions.h"
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/text.h"
#include "graph/node.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

typedef const mix_activate_options given;
typedef mix_tensor *(*function)(mix_tensor *x, given *o);

/* x combined with a constant, in x's dtype */
static mix_tensor *clipped(mix_tensor *x, double low, double high) {
  return mix_clip(x, mix_scalar_like(x, low), mix_scalar_like(x, high));
}
static mix_tensor *where(mix_tensor *condition, mix_tensor *a, double b) {
  return mix_select(condition, a, mix_scalar_like(a, b));
}
static mix_tensor *above(mix_tensor *x, double c) { return mix_greater(x, mix_scalar_like(x, c)); }

static mix_tensor *with_logits(mix_tensor *y, mix_tensor *logits) {
  if (!y || y->logits || y == logits) return y;
  y->logits = mix_retain(logits);
  return y;
}

static mix_tensor *linear(mix_tensor *x, given *o) { return x; }
/* Keras's relu: x above the threshold, 0 at the threshold, slope * (x - threshold) below it, clipped to
 * max_value. For max_value 6 Keras uses relu6, else clip; their derivatives at max_value are 0 and 1. */
static mix_tensor *relu(mix_tensor *x, given *o) {
  double slope = mix_option_number(o->negative_slope, 0), from = mix_option_number(o->threshold, 0);
  double max_value = mix_option_number(o->max_value, INFINITY);
  if (from == 0 && max_value == INFINITY) return slope == 0 ? mix_relu(x) : mix_leaky_relu(x, slope);
  const bool relu6 = from == 0 && max_value == 6;
  mix_tensor *y = relu6 ? mix_relu6(x) : from == 0 ? mix_relu(x) : where(above(x, from), x, 0);
  if (max_value != INFINITY && !relu6) y = clipped(y, 0, max_value);
  return slope == 0 ? y
                    : mix_subtract(y, mix_times(mix_relu(mix_subtract(mix_scalar_like(x, from), x)), slope));
}
static mix_tensor *leaky_relu(mix_tensor *x, given *o) {
  return mix_leaky_relu(x, mix_option_number(o->negative_slope, 0.2));
}
static mix_tensor *leaky_relu_layer(mix_tensor *x, given *o) {
  return mix_leaky_relu(x, mix_option_number(o->negative_slope, 0.3));
}
static mix_tensor *relu6(mix_tensor *x, given *o) { return mix_relu6(x); }
static mix_tensor *elu(mix_tensor *x, given *o) {
  double alpha = mix_option_number(o->alpha, 1);
  mix_tensor *y = mix_elu(x);
  return alpha == 1 ? y : mix_select(above(x, 0), x, mix_times(y, alpha));
}
static mix_tensor *selu(mix_tensor *x, given *o) { return mix_selu(x); }
static mix_tensor *celu(mix_tensor *x, given *o) {
  double alpha = mix_option_number(o->alpha, 1);
  /* Clamped first: exp of a large x overflows. */
  mix_tensor *negative = mix_minimum(x, mix_scalar_like(x, 0));
  return mix_add(mix_relu(x), mix_times(mix_expm1(mix_over(negative, alpha)), alpha));
}
static mix_tensor *softplus(mix_tensor *x, given *o) { return mix_softplus(x); }
static mix_tensor *softsign(mix_tensor *x, given *o) { return mix_softsign(x); }
static mix_tensor *sigmoid(mix_tensor *x, given *o) { return with_logits(mix_sigmoid(x), x); }
static mix_tensor *log_sigmoid(mix_tensor *x, given *o) {
  return mix_negative(mix_softplus(mix_negative(x)));
}
static mix_tensor *hard_sigmoid_relu6(mix_tensor *x) { return mix_over(mix_relu6(mix_plus(x, 3)), 6); }
static mix_tensor *hard_sigmoid(mix_tensor *x, given *o) {
  return o->semantics->hard_sigmoid_relu6 ? hard_sigmoid_relu6(x)
                                          : clipped(mix_plus(mix_times(x, 0.2), 0.5), 0, 1);
}
static mix_tensor *silu(mix_tensor *x, given *o) { return mix_multiply(x, mix_sigmoid(x)); }
static mix_tensor *hard_silu(mix_tensor *x, given *o) { return mix_multiply(x, hard_sigmoid_relu6(x)); }
/* Hendrycks, Gimpel: Gaussian error linear units; arXiv:1606.08415. */
static mix_tensor *gelu(mix_tensor *x, given *o) {
  if (!o->approximate) return mix_multiply(mix_times(x, 0.5), mix_plus(mix_erf(mix_times(x, M_SQRT1_2)), 1));
  mix_tensor *cube = mix_multiply(mix_square(x), x);
  mix_tensor *inner = mix_times(mix_add(x, mix_times(cube, 0.044715)), 0.7978845608028654); /* sqrt(2 / pi) */
  return mix_multiply(mix_times(x, 0.5), mix_plus(mix_tanh(inner), 1));
}
static mix_tensor *tanh_(mix_tensor *x, given *o) { return mix_tanh(x); }
static mix_tensor *tanh_shrink(mix_tensor *x, given *o) { return mix_subtract(x, mix_tanh(x)); }
static mix_tensor *hard_tanh(mix_tensor *x, given *o) { return clipped(x, -1, 1); }
static mix_tensor *soft_shrink(mix_tensor *x, given *o) {
  double lambda = mix_option_number(o->threshold, 0.5);
  mix_tensor *shrunk = mix_select(above(x, 0), mix_plus(x, -lambda), mix_plus(x, lambda));
  return where(above(mix_abs(x), lambda), shrunk, 0);
}
static mix_tensor *hard_shrink(mix_tensor *x, given *o) {
  return where(above(mix_abs(x), mix_option_number(o->threshold, 0.5)), x, 0);
}
static mix_tensor *threshold(mix_tensor *x, given *o) {
  return where(above(x, mix_option_number(o->threshold, 0)), x, o->value);
}
static mix_tensor *sparse_plus(mix_tensor *x, given *o) {
  /* Clipped: the square of a large x overflows. */
  mix_tensor *middle = mix_over(mix_square(clipped(mix_plus(x, 1), 0, 2)), 4);
  return mix_select(mix_less(x, mix_scalar_like(x, 1)), where(above(x, -1), middle, 0), x);
}
static mix_tensor *sparse_sigmoid(mix_tensor *x, given *o) {
  mix_tensor *one = mix_scalar_like(x, 1),
             *upper = mix_select(mix_greater_equal(x, one), one, mix_over(mix_plus(x, 1), 2));
  return mix_select(mix_less_equal(x, mix_scalar_like(x, -1)), mix_scalar_like(x, 0), upper);
}
static mix_tensor *squareplus(mix_tensor *x, given *o) {
  return mix_over(mix_add(x, mix_sqrt(mix_plus(mix_square(x), mix_option_number(o->alpha, 4)))), 2);
}
static mix_tensor *exponential(mix_tensor *x, given *o) { return mix_exp(x); }
static mix_tensor *mish(mix_tensor *x, given *o) { return mix_multiply(x, mix_tanh(mix_softplus(x))); }

/* ---- along an axis ---- */

/* The option's axis, counted from the front; -1 with the error recorded. */
static int axis_of(mix_tensor *x, given *o, const char *call) {
  int rank = mix_tensor_shape(x).rank, wanted = o->axis == 0 ? -1 : o->axis == MIX_AXIS_0 ? 0 : o->axis;
  int axis = mix_axis_normal(wanted, rank);
  if (axis < 0) mix_fail_value("%s: axis %d is outside a tensor of rank %d", call, wanted, rank);
  return axis;
}

/* Applies a function of the last axis along another axis. */
static mix_tensor *along(mix_tensor *x, int axis, mix_tensor *(*last)(mix_tensor *)) {
  int rank = mix_tensor_shape(x).rank;
  if (axis < 0) return NULL;
  if (axis == rank - 1) return last(x);
  mix_axes swap = {.count = rank};
  for (int i = 0; i < rank; i++) swap.axis[i] = i;
  swap.axis[axis] = rank - 1;
  swap.axis[rank - 1] = axis;
  return mix_transpose(last(mix_transpose(x, swap)), swap);
}

static mix_tensor *softmax(mix_tensor *x, given *o) {
  if (o->semantics->softmax_vector_refused && mix_tensor_shape(x).rank < 2)
    return mix_fail_value("softmax: cannot be applied to a tensor of rank %d; expected at least rank 2",
                          mix_tensor_shape(x).rank);
  return with_logits(along(x, axis_of(x, o, "softmax"), mix_softmax), x);
}
static mix_tensor *log_softmax(mix_tensor *x, given *o) {
  return along(x, axis_of(x, o, "log_softmax"), mix_log_softmax);
}

/* Dauphin et al.: Language modeling with gated convolutional networks; arXiv:1612.08083. */
static mix_tensor *glu(mix_tensor *x, given *o) {
  mix_shape shape = mix_tensor_shape(x), begin = {.rank = shape.rank}, size = shape;
  int axis = axis_of(x, o, "glu");
  if (axis < 0) return NULL;
  if (shape.dims[axis] < 0 || shape.dims[axis] % 2)
    return mix_fail_value("glu: axis %d has size %lld; expected an even number", axis,
                          (long long)shape.dims[axis]);
  for (int i = 0; i < shape.rank; i++) size.dims[i] = -1;
  size.dims[axis] = shape.dims[axis] / 2;
  mix_tensor *a = mix_slice(x, begin, size);
  begin.dims[axis] = shape.dims[axis] / 2;
  return mix_multiply(a, mix_sigmoid(mix_slice(x, begin, size)));
}

/* Martins, Astudillo: From softmax to sparsemax; arXiv:1602.02068. Element z is in the support if 1 + k z
 * exceeds the sum of the k elements >= z. k is counted by comparing all pairs, which needs no sort. */
static mix_tensor *sparsemax_last(mix_tensor *x) {
  mix_tensor *others = mix_expand_dims(x, -2), *self = mix_expand_dims(x, -1); /* (..., 1, n), (..., n, 1) */
  mix_tensor *not_below = mix_greater_equal(others, self);                     /* (..., n, n) */
  mix_axes last = MIX_AXES(-1);
  mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *k = mix_reduce_sum(mix_cast(not_below, dtype), last, false);
  mix_tensor *sum = mix_reduce_sum(mix_multiply(mix_cast(not_below, dtype), others), last, false);
  mix_tensor *support = mix_cast(mix_greater(mix_plus(mix_multiply(k, x), 1), sum), dtype);
  mix_tensor *size = mix_reduce_sum(support, last, true),
             *total = mix_reduce_sum(mix_multiply(support, x), last, true);
  mix_tensor *tau = mix_divide(mix_plus(total, -1), size);
  return mix_relu(mix_subtract(x, tau));
}
static mix_tensor *sparsemax(mix_tensor *x, given *o) {
  return along(x, axis_of(x, o, "sparsemax"), sparsemax_last);
}

enum { BOTH = 3, TF_KERAS = 1, KERAS3 = 2 };
static const struct {
  const char *name;
  int where;
  function apply;
} table[] = {
    {"linear", BOTH, linear},
    {"relu", BOTH, relu},
    {"softmax", BOTH, softmax},
    {"elu", BOTH, elu},
    {"selu", BOTH, selu},
    {"softplus", BOTH, softplus},
    {"softsign", BOTH, softsign},
    {"silu", BOTH, silu},
    {"gelu", BOTH, gelu},
    {"tanh", BOTH, tanh_},
    {"sigmoid", BOTH, sigmoid},
    {"exponential", BOTH, exponential},
    {"hard_sigmoid", BOTH, hard_sigmoid},
    {"mish", BOTH, mish},
    {"swish", BOTH, silu},
    {"ReLU", TF_KERAS, relu},
    {"LeakyReLU", TF_KERAS, leaky_relu_layer},
    {"ELU", TF_KERAS, elu},
    {"Softmax", TF_KERAS, softmax},
    {"leaky_relu", BOTH, leaky_relu},
    {"relu6", BOTH, relu6},
    {"celu", KERAS3, celu},
    {"log_sigmoid", KERAS3, log_sigmoid},
    {"hard_silu", KERAS3, hard_silu},
    {"hard_swish", KERAS3, hard_silu},
    {"glu", KERAS3, glu},
    {"tanh_shrink", KERAS3, tanh_shrink},
    {"hard_tanh", KERAS3, hard_tanh},
    {"soft_shrink", KERAS3, soft_shrink},
    {"hard_shrink", KERAS3, hard_shrink},
    {"threshold", KERAS3, threshold},
    {"sparse_plus", KERAS3, sparse_plus},
    {"sparse_sigmoid", KERAS3, sparse_sigmoid},
    {"squareplus", KERAS3, squareplus},
    {"log_softmax", BOTH, log_softmax},
    {"sparsemax", KERAS3, sparsemax},
};

static function find(const char *name, const mix_semantics *semantics) {
  if (!name) return linear;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name))
      return table[i].where & (semantics->activation_names_all ? KERAS3 : TF_KERAS) ? table[i].apply : NULL;
  return NULL;
}

/* Has a row before it the same function? */
static bool is_alias(size_t row) {
  for (size_t i = 0; i < row; i++)
    if (table[i].apply == table[row].apply) return true;
  return false;
}

/* Has the generation an activation of that name? NULL is linear. Otherwise false with a ValueError that lists
 * the known names. */
static bool is_known(const char *activation, const mix_semantics *semantics, const char *call) {
  if (find(activation, semantics)) return true;
  char list[512], hint[100];
  mix_text names = {.text = list, .size = sizeof list};
  mix_did_you_mean nearest = {.word = activation};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (find(table[i].name, semantics)) {
      mix_did_you_mean_try(&nearest, table[i].name);
      if (!is_alias(i)) mix_text_put(&names, "%s%s", names.used ? ", " : "", table[i].name);
    }
  return mix_fail_value("%s: activation '%.60s' is not known to %s%s; expected one of %s", call, activation,
                        semantics->name, mix_did_you_mean_hint(&nearest, hint, sizeof hint), list);
}

mix_shape mix_activation_shape(const char *activation, mix_shape shape) {
  int64_t *last = shape.rank > 0 ? &shape.dims[shape.rank - 1] : NULL;
  if (last && *last > 0 && activation && !strcmp(activation, "glu")) *last /= 2;
  return shape;
}

/* Of `value`, which elements may become, every number is one. */
static bool are_numbers(const mix_activate_options *o) {
  const struct {
    const char *name;
    double number;
  } given[] = {{"negative_slope", o->negative_slope},
               {"max_value", o->max_value},
               {"threshold", o->threshold},
               {"alpha", o->alpha}};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (isnan(given[i].number))
      return mix_fail_value("activate: %s is nan; expected a number", given[i].name);
  return true;
}

mix_tensor *mix_activate_with(const char *activation, const mix_activate_options *options) {
  MIX_OPTIONS(mix_activate_options, o, options, "activate");
  if (!mix_given(o.x, &mix_tensor_class, "activate", "a tensor") || !are_numbers(&o)) return NULL;
  o.semantics = mix_semantics_or_current(o.semantics);
  return is_known(activation, o.semantics, "activate") ? find(activation, o.semantics)(o.x, &o) : NULL;
}

/* ---- as the option of a layer: a name, NULL for linear ---- */

static bool resolve(const mix_field *field) {
  const char **name = field->value;
  if (!is_known(*name, field->rules, field->call)) return false;
  *name = mix_intern(*name);
  return !mix_failed();
}
static json_t *write(const mix_field *field) {
  const char *name = *(const char **)field->value;
  return json_string(name ? name : "linear");
}
const mix_value_kind mix_field_activation = {"a string", sizeof(char *), resolve, NULL,
                                             write,      mix_read_text,  NULL};
