/* The attention layers and EinsumDense: masks, scores, configs, weights, errors. The numbers are those of
 * Keras 3.15 and tf_keras 2.21 on TensorFlow 2.21 for the same weights. */
/* Holds docs/NUMERICS.md: Einstein sums and attention. */
#include "nn/layer_support.h"
#include "nn/layers/builtin.h"
#include <mixtape/device.h>
#include <mixtape/einsum.h>

static const char *const generations[] = {"tf_keras", "keras3"};
static bool is_keras3(int generation) { return generation == 1; }
/* Keras's numbers, too, are those of float32, which rounds by at most u = 2^-24 of a number, by u / sqrt(3)
 * in the root mean square: a score of up to 2.3 4 times, and probabilities have two scores' errors; a
 * probability 11 times, a result 3 times. Both have sqrt(2 (2 4 2.3^2 + 14) / 3) u = 6.1 u of the sum of
 * |probability value|, which is at most 0.8 (1 + |result|): the bound, 17 u (1 + |result|), is 3.5 of these
 * deviations. */
#define NEAR(tensor, ...) EXPECT(tensor, 1e-6, 1e-6, __VA_ARGS__)

static mix_tensor *tensor_of(mix_shape shape, const float *values) {
  return mix_tensor_from(values, MIX_FLOAT32, shape);
}
static mix_tensor *query(void) {
  return tensor_of(MIX_SHAPE(1, 3, 2), (const float[]){.5f, -1, 1, .25f, -.75f, .5f});
}
static mix_tensor *value(void) {
  return tensor_of(MIX_SHAPE(1, 3, 2), (const float[]){1, .5f, -.5f, 2, .25f, -1});
}
static mix_tensor *mask_of(mix_shape shape, const bool *values) {
  return mix_tensor_from(values, MIX_BOOL, shape);
}

/* Projections of two features to one head of two, and back, that change nothing. */
static mix_layer *identities(mix_layer *layer) {
  assert_int_equal(mix_layer_build(layer, MIX_SHAPE(1, 3, 2)), MIX_OK);
  mix_list *values = mix_list_new(0, NULL);
  for (int i = 0; i < 4; i++) {
    const mix_shape shape = i < 3 ? MIX_SHAPE(2, 1, 2) : MIX_SHAPE(1, 2, 2);
    mix_list_append(values, tensor_of(shape, (const float[]){1, 0, 0, 1}));
    mix_list_append(values, mix_fill(i < 3 ? MIX_SHAPE(1, 2) : MIX_SHAPE(2), 0, MIX_FLOAT32));
  }
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
  return layer;
}

/* ---- Attention ---- */

static void attention_scores_and_masks(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_attention();
    mix_list *inputs = mix_list_of(query(), value());
    mix_list *both = mix_call_outputs(layer, inputs, .return_attention_scores = true);
    NEAR(mix_list_get(both, 0), 0.4102991223335266, -0.566085934638977, 0.557105541229248, 0.5,
         -0.24589096009731293, 1.5224957466125488);
    NEAR(mix_list_get(both, 1), 0.23891346156597137, 0.025181293487548828, 0.7359052896499634,
         0.6063160300254822, 0.1968419998884201, 0.1968419998884201, 0.11976265907287598, 0.7809506058692932,
         0.09928673505783081);
    assert_int_equal(mix_list_count(mix_call_outputs(layer, inputs)), 1);
    NEAR(mix_call(layer, inputs, .use_causal_mask = true), 1, 0.5, 0.6323724985122681, 0.8676275014877319,
         -0.24589096009731293, 1.5224957466125488);
    mix_tensor *q_mask = mask_of(MIX_SHAPE(1, 3), (const bool[]){true, false, true}),
               *v_mask = mask_of(MIX_SHAPE(1, 3), (const bool[]){true, true, false});
    mix_tensor *y = mix_call(layer, inputs, .masks = mix_list_of(q_mask, v_mask));
    NEAR(y, 0.856975793838501, 0.643024206161499, 0, 0, -0.3005536198616028, 1.800553560256958);
    assert_ptr_equal(y->mask->node, q_mask->node); /* passed on */
    expect_refused(mix_call(layer, query()), MIX_VALUE_ERROR, "[query, value]");
    expect_refused(mix_call(layer, mix_list_of(query())), MIX_VALUE_ERROR, "1 tensors");
    expect_refused(mix_call(layer, inputs, .attention_mask = v_mask), MIX_TYPE_ERROR, "attention_mask");
    expect_refused(mix_attention(.score_mode = "cosine"), MIX_VALUE_ERROR, "cosine");
  }
}

static void dropout_draws_anew(void **state) {
  (void)state;
  mix_layer *layer = mix_attention(.dropout = 0.5, .seed = 3);
  mix_list *inputs =
      mix_list_of(mix_fill(MIX_SHAPE(1, 8, 2), 1, MIX_FLOAT32), mix_fill(MIX_SHAPE(1, 8, 2), 1, MIX_FLOAT32));
  double first[16], second[16], idle[16];
  mix_tensor_read(mix_call(layer, inputs, .training = MIX_TRUE), MIX_FLOAT64, first, 16);
  mix_tensor_read(mix_call(layer, inputs, .training = MIX_TRUE), MIX_FLOAT64, second, 16);
  mix_tensor_read(mix_call(layer, inputs), MIX_FLOAT64, idle, 16);
  assert_memory_not_equal(first, second, sizeof first);
  for (int i = 0; i < 16; i++) {
    assert_true(idle[i] == 1);                        /* 8 equal weights of 1 / 8, exactly */
    assert_true(first[i] * 4 == round(first[i] * 4)); /* kept ones doubled */
  }
}

/* ---- MultiHeadAttention ---- */

static void multi_head_masks(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = identities(mix_multi_head_attention(.num_heads = 1, .key_dim = 2));
    mix_tensor *mask =
        mask_of(MIX_SHAPE(1, 3, 3), (const bool[]){true, false, true, false, false, false, true, true, true});
    mix_list *values = mix_list_of(value());
    /* a row without keys is uniform; Keras 3 zeroes it where the scores are asked for */
    const double row[2] = {is_keras3(g) ? 0 : 0.25, is_keras3(g) ? 0 : 0.5},
                 third = is_keras3(g) ? 0 : 1 / 3.;
    mix_list *both = mix_call_outputs(layer, query(), .arguments = values, .attention_mask = mask,
                                      .return_attention_scores = true);
    NEAR(mix_list_get(both, 0), 0.4832425117492676, -0.5335150361061096, row[0], row[1], -0.11765176057815552,
         1.2683205604553223);
    NEAR(mix_list_get(both, 1), 0.31099000573158264, 0, 0.6890100240707397, third, third, third,
         0.17726968228816986, 0.6674720048904419, 0.15525823831558228);
    expect_shape(mix_list_get(both, 1), MIX_SHAPE(1, 1, 3, 3));
    NEAR(mix_call(layer, query(), .arguments = values, .attention_mask = mask), 0.4832425117492676,
         -0.5335150361061096, 0.25, 0.5, -0.11765176057815552, 1.2683205604553223);
    NEAR(mix_call(layer, query(), .arguments = values, .use_causal_mask = true), 1, 0.5, 0.5335150361061096,
         0.9664850234985352, -0.11765176057815552, 1.2683205604553223);
    /* the value's own mask acts as the attention mask of each query; the query's is passed on */
    mix_tensor *v_mask = mask_of(MIX_SHAPE(1, 3), (const bool[]){true, true, false}),
               *repeated = mix_broadcast_to(mix_expand_dims(v_mask, 1), MIX_SHAPE(1, 3, 3));
    double own[6], explicit[6];
    mix_tensor *masked = query();
    masked->mask = mix_retain(mask_of(MIX_SHAPE(1, 3), (const bool[]){true, true, true}));
    mix_tensor *y = mix_call(layer, masked, .arguments = values, .argument_masks = mix_list_of(v_mask));
    assert_non_null(y->mask);
    mix_tensor_read(y, MIX_FLOAT64, own, 6);
    mix_tensor_read(mix_call(layer, query(), .arguments = values, .attention_mask = repeated), MIX_FLOAT64,
                    explicit, 6);
    assert_memory_equal(own, explicit, sizeof own);
  }
}

#define FIRST 0.4246596693992615, -0.38256508111953735
#define LAST -0.11765176057815552, 1.2683205604553223
static mix_tensor *masked_query(void) {
  mix_tensor *masked = query();
  masked->mask = mix_retain(mask_of(MIX_SHAPE(1, 3), (const bool[]){true, true, false}));
  return masked;
}

/* In Keras 3 the mask that a query carries goes on to the result, not a given one, which is ignored by
 * multi-head attention. */
static void given_masks_of_queries(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *masked = masked_query(), *given = mask_of(MIX_SHAPE(1, 3), (const bool[]){true, false, true});
  mix_list *values = mix_list_of(value());
  mix_layer *layer = identities(mix_multi_head_attention(1, 2));
  mix_tensor *y = mix_call(layer, query(), .arguments = values, .mask = given);
  NEAR(y, FIRST, 0.46626025438308716, 0.5, LAST);
  assert_null(y->mask);
  y = mix_call(layer, masked, .arguments = values, .mask = given);
  NEAR(y, FIRST, 0.46626025438308716, 0.5, 0.25, 0.5);
  assert_ptr_equal(y->mask, masked->mask);
  layer = identities(mix_grouped_query_attention(2, 1, 1));
  y = mix_call(layer, masked, .arguments = values, .mask = given);
  NEAR(y, FIRST, 0.25, 0.5, LAST);
  assert_ptr_equal(y->mask, masked->mask);
  assert_null(mix_call(layer, query(), .arguments = values, .mask = given)->mask);
}

/* The layer of tf_keras has no argument for it: a given mask counts as if the query carried it, and the
 * numbers are those of such queries there. */
static void given_masks_of_queries_in_tf_keras(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  mix_tensor *masked = masked_query(), *given = mask_of(MIX_SHAPE(1, 3), (const bool[]){true, false, true}),
             *y;
  mix_list *values = mix_list_of(value());
  mix_layer *layer = identities(mix_multi_head_attention(1, 2));
  y = mix_call(layer, masked, .arguments = values);
  NEAR(y, FIRST, 0.46626025438308716, 0.5, 0.25, 0.5);
  assert_ptr_equal(y->mask, masked->mask);
  for (int carries = 0; carries < 2; carries++) {
    y = mix_call(layer, carries ? masked : query(), .arguments = values, .mask = given);
    NEAR(y, FIRST, 0.25, 0.5, LAST);
    assert_ptr_equal(y->mask->node, given->node);
  }
}

/* tf_keras lowers masked scores by 1e9, so that large ones still win, unless the option replaces them. */
static void robust_masking(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  mix_tensor *mask =
      mask_of(MIX_SHAPE(1, 3, 3), (const bool[]){true, false, true, false, false, false, true, true, true});
  mix_tensor *large = mix_multiply(query(), mix_scalar(1e9, MIX_FLOAT32));
  mix_list *values = mix_list_of(value());
  for (int robust = 0; robust < 2; robust++) {
    mix_layer *layer = identities(
        mix_multi_head_attention(.num_heads = 1, .key_dim = 2, .softmax_robust_masking = robust == 1));
    mix_list *both = mix_call_outputs(layer, large, .arguments = values, .attention_mask = mask,
                                      .return_attention_scores = true);
    mix_tensor *blocks = mix_call(layer, large, .arguments = values, .attention_mask = mask),
               *numbers =
                   mix_call(layer, large, .arguments = values, .attention_mask = mix_cast(mask, MIX_FLOAT32));
    mix_tensor *results[] = {mix_list_get(both, 0), blocks, numbers};
    for (int i = 0; i < 3; i++)
      if (robust)
        NEAR(results[i], 0.25, -1, 0.25, 0.5, -0.5, 2);
      else
        NEAR(results[i], 0.25, -1, 1, 0.5, -0.5, 2);
    if (robust)
      NEAR(mix_list_get(both, 1), 0, 0, 1, 1 / 3., 1 / 3., 1 / 3., 0, 1, 0);
    else
      NEAR(mix_list_get(both, 1), 0, 0, 1, 1, 0, 0, 0, 1, 0);
    made_again(mix_multi_head_attention(1, 2, .softmax_robust_masking = robust == 1));
    assert_true(!strstr(mix_layer_config(mix_softmax_layer(.robust_masking = robust == 1)),
                        "\"robust_masking\": true") == !robust);
    assert_true(!strstr(mix_layer_config(mix_softmax_layer(.name = "plain")), "robust_masking"));
  }
  made_again(mix_softmax_layer(.robust_masking = true));
  mix_layer *soft = mix_softmax_layer(.robust_masking = true);
  mix_tensor *x = tensor_of(MIX_SHAPE(2, 3), (const float[]){3e9f, 1, -3, -2, 5, 1});
  NEAR(mix_call(soft, x, .mask = mask_of(MIX_SHAPE(2, 3), (const bool[6]){false, true})), 0, 1, 0, 1 / 3.,
       1 / 3., 1 / 3.);
}

enum { BATCH = 3, TOKENS = 70, FEATURES = 6, HEADS = 2, PER_HEAD = 5, IN_ALL = BATCH * TOKENS * FEATURES };
#define KEPT 0.75 /* by dropout */

/* Weight i of the layer as float64. */
static mix_tensor *weight(mix_layer *layer, int i) {
  return mix_cast(mix_variable_true_value(mix_list_get(mix_layer_weights(layer), i)), MIX_FLOAT64);
}
static mix_tensor *product(const char *equation, mix_tensor *a, mix_tensor *b) {
  return mix_einsum(equation, 2, (mix_tensor *[]){a, b});
}
static double root_mean_square(mix_tensor *x) {
  return sqrt(mix_tensor_item(mix_reduce_mean(mix_square(x), MIX_ALL_AXES, false)));
}

/* The largest of |tokens kernel| + |tokens| |kernel| times `slack`, a share of rounding. The kernel has
 * `count` columns. */
static double largest_projection(const double *tokens, mix_layer *layer, int weight, double slack) {
  double kernel[FEATURES * HEADS * PER_HEAD], largest = 0;
  mix_tensor_read(mix_variable_true_value(mix_list_get(mix_layer_weights(layer), weight)), MIX_FLOAT64,
                  kernel, FEATURES * HEADS * PER_HEAD);
  for (int t = 0; t < BATCH * TOKENS; t++)
    for (int c = 0; c < HEADS * PER_HEAD; c++) {
      double sum = 0, all = 0;
      for (int f = 0; f < FEATURES; f++) {
        const double product = tokens[t * FEATURES + f] * kernel[f * HEADS * PER_HEAD + c];
        sum += product, all += fabs(product);
      }
      largest = fmax(largest, fabs(sum) + slack * all);
    }
  return largest;
}

/* How far the two forms may differ (docs/NUMERICS.md, attention), with e of the storage dtype: query, key and
 * value are the same bits in both. */
static double difference_bound(mix_layer *layer, const double *tokens, double e) {
  const double u = 0x1p-24, n = TOKENS, d = PER_HEAD,
               slack = 4 * e; /* of tokens, kernel, product and scaling */
  const double q = largest_projection(tokens, layer, 0, slack),
               k = largest_projection(tokens, layer, 2, slack),
               v = largest_projection(tokens, layer, 4, slack), s = d * q * k / sqrt(d);
  const double score = (4 * e + 2 * d * u) * s, probability = expm1(2 * score) + 2 * (n + 8) * u + 4 * e,
               head = v / KEPT * (probability + 2 * n * u + 2 * e);
  double kernel[HEADS * PER_HEAD * FEATURES], columns[FEATURES] = {0}, largest = 0;
  mix_tensor_read(mix_variable_true_value(mix_list_get(mix_layer_weights(layer), 6)), MIX_FLOAT64, kernel,
                  HEADS * PER_HEAD * FEATURES);
  for (int i = 0; i < HEADS * PER_HEAD * FEATURES; i++) columns[i % FEATURES] += fabs(kernel[i]);
  for (int i = 0; i < FEATURES; i++) largest = fmax(largest, columns[i] * (1 + e));
  return largest * (head + v / KEPT * (2 * HEADS * d * u + 2 * e));
}

/* Four deviations of that difference if errors are independent: a rounding is off by e / sqrt(3) in the root
 * mean square, numbers have theirs, and squares add up. `y`: the root mean square of the layer's results. */
static double likely_difference(mix_layer *layer, const double *tokens, double y, double e) {
  const double u = 0x1p-24, n = TOKENS, d = PER_HEAD, sums = 2 * u * u / 3, roundings = 2 * e * e / 3;
  mix_tensor *x = mix_tensor_from_doubles(tokens, MIX_FLOAT64, MIX_SHAPE(BATCH, TOKENS, FEATURES)),
             *q = product("btf,fnd->btnd", x, weight(layer, 0)),
             *k = product("btf,fnd->btnd", x, weight(layer, 2));
  const double s = root_mean_square(product("bqnd,bknd->bnqk", q, k)) / sqrt(d),
               v = root_mean_square(product("btf,fnd->btnd", x, weight(layer, 4))) / KEPT,
               column = sqrt(HEADS * d) * root_mean_square(weight(layer, 6));
  const double score = s * s * (2 * roundings + d * sums),
               probability =
                   2 * score + (n + 8) * sums + 2 * roundings, /* its own score, and all of the sum */
      head = v * v * (probability + n * sums + roundings);
  return 4 * sqrt(column * column * head + y * y * (HEADS * d * sums + roundings));
}

/* The form by blocks and the one with all scores, in training with dropout of one seed: within the bound of
 * the worst case in every operation at once, and within four deviations. Most roundings are the same in both.
 */
static void blocks_as_all_scores(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    double rounding;
  } rows[] = {{"float32", 0x1p-24}, {"mixed_float16", 0x1p-11}, {"mixed_bfloat16", 0x1p-8}};
  const char *accumulate = mix_accumulate();
  assert_int_equal(mix_set_accumulate("exact"), MIX_OK); /* sums in float32, as the bounds have them */
  for (int i = 0; i < 6; i++) {
    double y[2][IN_ALL], bound = 0, likely = 0;
    mix_set_semantics(generations[i % 2]);
    for (int scores = 0; scores < 2; scores++) {
      mix_set_seed(11);
      mix_layer *layer =
          mix_multi_head_attention(.num_heads = HEADS, .key_dim = PER_HEAD, .dropout = 1 - KEPT, .seed = 3,
                                   .dtype = rows[i / 2].policy);
      double values[IN_ALL];
      for (int k = 0; k < IN_ALL; k++) values[k] = number_at(k);
      mix_tensor *x = mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(BATCH, TOKENS, FEATURES));
      mix_list *results = mix_call_outputs(layer, x, .arguments = mix_list_of(x), .training = MIX_TRUE,
                                           .use_causal_mask = true, .return_attention_scores = scores);
      assert_int_equal(mix_error(), MIX_OK);
      mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT64, y[scores], IN_ALL);
      const double size = root_mean_square(mix_cast(mix_list_get(results, 0), MIX_FLOAT64));
      bound = difference_bound(layer, values, rows[i / 2].rounding);
      likely = likely_difference(layer, values, size, rows[i / 2].rounding);
    }
    for (int k = 0; k < IN_ALL; k++)
      if (!(fabs(y[0][k] - y[1][k]) <= fmin(bound, likely)))
        fail_msg("%s %s: element %d is %g by blocks and %g with scores", generations[i % 2],
                 rows[i / 2].policy, k, y[0][k], y[1][k]);
  }
  mix_set_accumulate(accumulate);
}

/* A tensor in float64, and how far float32 may be off from each element (docs/NUMERICS.md, attention). */
typedef struct bounded {
  mix_tensor *is, *off;
} bounded;

static mix_tensor *scaled(mix_tensor *x, double factor) {
  return mix_multiply(x, mix_scalar_like(x, factor));
}
static bounded exact(mix_tensor *x) { return (bounded){x, scaled(x, 0)}; }
static mix_tensor *most(bounded x) { return mix_add(mix_abs(x.is), x.off); }
static double largest_of(mix_tensor *x) { return mix_tensor_item(mix_reduce_max(x, MIX_ALL_AXES, false)); }
/* The relative error of n operations one behind the other. */
static double share_of(double n) { return n * 0x1p-24 / (1 - n * 0x1p-24); }

/* Sums of n products. */
static bounded sums(const char *equation, bounded a, bounded b, int n) {
  mix_tensor *all = product(equation, mix_abs(a.is), mix_abs(b.is)),
             *more = scaled(product(equation, most(a), most(b)), 1 + share_of(n + 1));
  return (bounded){product(equation, a.is, b.is), mix_subtract(more, all)};
}

/* Of n scores, which are subtracted from the largest: two exponentials of 2 ulp, a sum and a quotient. */
static bounded softmax_of(bounded x, int n) {
  const double off = largest_of(x.off) + 2 * 0x1p-24 * largest_of(most(x));
  mix_tensor *p = mix_softmax(x.is);
  return (bounded){p, scaled(p, exp(2 * off) * (1 + share_of(n + 8)) - 1)};
}

/* Query, value and key of different sizes, a value_dim and an output_shape of its own: the layer in float32,
 * by blocks and with its scores, beside its formula in float64. Biases are zeros, and the scale of 1 / 2 is
 * exact. */
static void cross_attention_by_its_formula(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (int axes = 1; axes < 3; axes++) {
      mix_set_semantics(generations[g]);
      mix_layer *layer = mix_multi_head_attention(.num_heads = 2, .key_dim = 4, .value_dim = 5,
                                                  .output_shape = MIX_SHAPE(2, 3),
                                                  .attention_axes = axes == 1 ? MIX_AXES(1) : MIX_AXES(1, 2));
      const mix_shape shapes[] = {axes == 1 ? MIX_SHAPE(2, 3, 6) : MIX_SHAPE(2, 3, 1, 6),
                                  axes == 1 ? MIX_SHAPE(2, 5, 4) : MIX_SHAPE(2, 5, 1, 4),
                                  axes == 1 ? MIX_SHAPE(2, 5, 7) : MIX_SHAPE(2, 5, 1, 7)};
      mix_tensor *x[3], *wide[3];
      for (int i = 0; i < 3; i++) {
        x[i] = numbers(shapes[i], i + 1, MIX_FLOAT32, NULL);
        wide[i] = mix_reshape(mix_cast(x[i], MIX_FLOAT64), MIX_SHAPE(2, i ? 5 : 3, -1));
      }
      mix_list *arguments = mix_list_of(x[1], x[2]);
      mix_tensor *alone = mix_call(layer, x[0], .arguments = arguments);
      mix_list *both = mix_call_outputs(layer, x[0], .arguments = arguments, .return_attention_scores = true);
      assert_int_equal(mix_error(), MIX_OK);
      const bounded q = sums("btf,fnd->btnd", exact(wide[0]), exact(weight(layer, 0)), 6),
                    k = sums("btf,fnd->btnd", exact(wide[2]), exact(weight(layer, 2)), 7),
                    v = sums("btf,fnd->btnd", exact(wide[1]), exact(weight(layer, 4)), 4),
                    scores = sums("bqnd,bknd->bnqk", q, (bounded){scaled(k.is, 0.5), scaled(k.off, 0.5)}, 4),
                    p = softmax_of(scores, 5),
                    y = sums("bqnd,ndxy->bqxy", sums("bnqk,bknd->bqnd", p, v, 5), exact(weight(layer, 6)),
                             10);
      const struct {
        mix_tensor *got;
        bounded wanted;
        mix_shape shape;
      } rows[] = {
          {alone, y, axes == 1 ? MIX_SHAPE(2, 3, 2, 3) : MIX_SHAPE(2, 3, 1, 2, 3)},
          {mix_list_get(both, 0), y, axes == 1 ? MIX_SHAPE(2, 3, 2, 3) : MIX_SHAPE(2, 3, 1, 2, 3)},
          {mix_list_get(both, 1), p, axes == 1 ? MIX_SHAPE(2, 2, 3, 5) : MIX_SHAPE(2, 2, 3, 1, 5, 1)}};
      for (int r = 0; r < 3; r++) {
        double got[60], wanted[60], off[60];
        const int64_t count = mix_shape_size(rows[r].shape);
        expect_shape(rows[r].got, rows[r].shape);
        assert_int_equal(mix_tensor_read(rows[r].got, MIX_FLOAT64, got, count), MIX_OK);
        assert_int_equal(mix_tensor_read(rows[r].wanted.is, MIX_FLOAT64, wanted, count), MIX_OK);
        assert_int_equal(mix_tensor_read(rows[r].wanted.off, MIX_FLOAT64, off, count), MIX_OK);
        for (int64_t i = 0; i < count; i++) assert_true(fabs(got[i] - wanted[i]) <= off[i]);
      }
    }
}

static void L26_weights(void **state) {
  (void)state;
  static const char *const names[] = {"query/kernel",
                                      "query/bias",
                                      "key/kernel",
                                      "key/bias",
                                      "value/kernel",
                                      "value/bias",
                                      "attention_output/kernel",
                                      "attention_output/bias"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_multi_head_attention(2, 4, .name = "mha");
    mix_tensor *x = mix_fill(MIX_SHAPE(3, 5, 8), 1, MIX_FLOAT32);
    expect_shape(mix_call(layer, x, .arguments = mix_list_of(x)), MIX_SHAPE(3, 5, 8));
    mix_list *weights = mix_layer_weights(layer);
    assert_int_equal(mix_list_count(weights), 8);
    for (int i = 0; i < 8; i++) {
      char name[64];
      snprintf(name, sizeof name, "mha/%s", names[i]);
      assert_string_equal(mix_variable_name(mix_list_get(weights, i)), name);
    }
    assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(weights, 0)), MIX_SHAPE(8, 2, 4)));
    assert_true(mix_shape_equal(mix_variable_shape(mix_list_get(weights, 6)), MIX_SHAPE(2, 4, 8)));
  }
  mix_layer *gated = mix_grouped_query_attention(4, 4, 2, .use_gate = true);
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 3, 8), 1, MIX_FLOAT32);
  assert_non_null(mix_call(gated, x, .arguments = mix_list_of(x)));
  assert_int_equal(mix_list_count(mix_layer_weights(gated)), 10);
  assert_string_equal(mix_variable_name(mix_list_get(mix_layer_weights(gated), 4)),
                      "grouped_query_attention/gate/kernel");
}

static void refused_attention(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 3, 4), 1, MIX_FLOAT32),
             *flat = mix_fill(MIX_SHAPE(2, 4), 1, MIX_FLOAT32);
  expect_refused(mix_multi_head_attention(.num_heads = 0, .key_dim = 2), MIX_VALUE_ERROR, "num_heads");
  expect_refused(mix_multi_head_attention(.num_heads = 2, .key_dim = -1), MIX_VALUE_ERROR, "key_dim");
  expect_refused(mix_multi_head_attention(2, 2, .dropout = 2), MIX_VALUE_ERROR, "dropout");
  expect_refused(mix_call(mix_multi_head_attention(2, 2), x), MIX_TYPE_ERROR, "value is missing");
  expect_refused(mix_call(mix_multi_head_attention(2, 2), x, .arguments = mix_list_of(x, x, x)),
                 MIX_TYPE_ERROR, "3 arguments behind its input; expected at most 2");
  expect_refused(mix_call(mix_multi_head_attention(2, 2), x, .arguments = mix_list_of(flat)), MIX_VALUE_ERROR,
                 "equal ranks");
  expect_refused(mix_call(mix_multi_head_attention(2, 2), x,
                          .arguments = mix_list_of(x, mix_fill(MIX_SHAPE(2, 5, 4), 1, MIX_FLOAT32))),
                 MIX_VALUE_ERROR, "key (2, 5, 4)");
  expect_refused(
      mix_call(mix_multi_head_attention(2, 2, .attention_axes = MIX_AXES(2)), x, .arguments = mix_list_of(x)),
      MIX_VALUE_ERROR, "axis 2");
  expect_refused(mix_grouped_query_attention(4, 3, 2), MIX_VALUE_ERROR, "multiple");
  expect_refused(mix_call(mix_dense(2), x, .use_causal_mask = true), MIX_TYPE_ERROR, "use_causal_mask");
  expect_refused(mix_call(mix_dense(2), x, .return_attention_scores = true), MIX_TYPE_ERROR,
                 "return_attention_scores");
}

/* ---- EinsumDense ---- */

static void expect_losses(mix_layer *layer, int count, const double *expected) {
  mix_list *losses = mix_layer_losses(layer);
  assert_int_equal(mix_list_count(losses), count);
  for (int i = 0; i < count; i++) NEAR(mix_list_get(losses, i), expected[i]);
}

/* The l1 norms of the layer's results, and of its projections of query, key, value and result. */
static void activity_penalties(void **state) {
  (void)state;
  static const double own[] = {3.1594572}, inner[] = {4, 5.25, 5.25, 3.1594572},
                      both[] = {3.1594572, 4, 5.25, 5.25, 3.1594572}, sum[] = {4};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_regularizer *l1 = mix_regularizer_new("l1", .l1 = 1);
    mix_layer *layer = identities(mix_multi_head_attention(1, 2, .activity_regularizer = l1));
    mix_call(layer, query(), .arguments = mix_list_of(value()));
    expect_losses(layer, is_keras3(g) ? 4 : 1, is_keras3(g) ? inner : own);
    assert_non_null(strstr(mix_layer_config(layer), "\"L1\""));
    layer = mix_einsum_dense(.equation = "abc,cd->abd", .output_shape = MIX_SHAPE(-1, 2),
                             .kernel_initializer = "ones", .activity_regularizer = l1);
    mix_call(layer, query());
    expect_losses(layer, is_keras3(g), sum);
    assert_int_equal(!strstr(mix_layer_config(layer), "\"activity_regularizer\": null"), is_keras3(g));
    if (!is_keras3(g)) continue;
    layer = identities(mix_grouped_query_attention(2, 1, 1, .activity_regularizer = l1));
    mix_call(layer, query(), .arguments = mix_list_of(value()));
    expect_losses(layer, 5, both);
  }
}

static void einsum_dense_shapes(void **state) {
  (void)state;
  const struct {
    const char *equation, *bias;
    mix_shape output, input, kernel, bias_shape, result;
  } rows[] = {
      {"ab,bc->ac", "c", MIX_SHAPE(4), MIX_SHAPE(2, 3), MIX_SHAPE(3, 4), MIX_SHAPE(4), MIX_SHAPE(2, 4)},
      {"abc,cd->abd", "d", MIX_SHAPE(-1, 4), MIX_SHAPE(2, 3, 5), MIX_SHAPE(5, 4), MIX_SHAPE(4),
       MIX_SHAPE(2, 3, 4)},
      {"abc,cde->abde", "be", MIX_SHAPE(3, 2, 4), MIX_SHAPE(2, 3, 5), MIX_SHAPE(5, 2, 4), MIX_SHAPE(3, 1, 4),
       MIX_SHAPE(2, 3, 2, 4)},
      {"...x,xy->...y", "y", MIX_SHAPE(4), MIX_SHAPE(2, 3, 2, 5), MIX_SHAPE(5, 4), MIX_SHAPE(4),
       MIX_SHAPE(2, 3, 2, 4)},
      {"ab...,bc->ac...", "c", MIX_SHAPE(4), MIX_SHAPE(2, 3, 5), MIX_SHAPE(3, 4), MIX_SHAPE(4, 1),
       MIX_SHAPE(2, 4, 5)},
      {"abc,cb->ab", "b", MIX_SHAPE(3), MIX_SHAPE(2, 3, 5), MIX_SHAPE(5, 3), MIX_SHAPE(3), MIX_SHAPE(2, 3)},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_layer *layer = mix_einsum_dense(.equation = rows[i].equation, .output_shape = rows[i].output,
                                        .bias_axes = rows[i].bias);
    expect_shape(mix_call(layer, mix_fill(rows[i].input, 1, MIX_FLOAT32)), rows[i].result);
    assert_true(
        mix_shape_equal(mix_variable_shape(mix_list_get(mix_layer_weights(layer), 0)), rows[i].kernel));
    assert_true(
        mix_shape_equal(mix_variable_shape(mix_list_get(mix_layer_weights(layer), 1)), rows[i].bias_shape));
  }
}

/* Keras 3: fans are products of the summed and the other axes of the kernel; before, of its last two. The
 * largest of 32,768 uniform numbers is in the last hundredth but for once in 10^143. */
static void einsum_dense_fans(void **state) {
  (void)state;
  const double limits[] = {sqrt(6. / (16 * 64 + 32 * 64)), sqrt(6. / (64 + 16 * 32))};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_einsum_dense(.equation = "abc,cde->abde", .output_shape = MIX_SHAPE(-1, 16, 32));
    mix_layer_build(layer, MIX_SHAPE(1, 2, 64));
    mix_tensor *kernel = mix_variable_true_value(mix_list_get(mix_layer_weights(layer), 0));
    const double largest = mix_tensor_item(mix_reduce_max(mix_abs(kernel), MIX_ALL_AXES, false));
    assert_true(largest <= limits[g] && largest > 0.99 * limits[g]);
  }
}

static void refused_equations(void **state) {
  (void)state;
  static const char *const bad[] = {"ab,bc",         "ab->a",           "ab,bc,cd->ad",
                                    "...a,ab->b",    "...ab...,bc->ac", "a b,bc->ac",
                                    "a...,ab->b...", "ab,bc->...c",     ""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_refused(mix_einsum_dense(.equation = bad[i], .output_shape = MIX_SHAPE(2)), MIX_VALUE_ERROR,
                   i == 8 ? "equation" : "expected [X],[Y]->[Z]");
  const struct {
    const char *equation, *bias, *mentions;
    mix_shape output;
  } rows[] = {{"ab,bc->ac", "d", "bias axis 'd'", MIX_SHAPE(2)},
              {"ab,bc->ac", NULL, "2 sizes", MIX_SHAPE(2, 2)},
              {"abc,cd->abd", NULL, "does not fit", MIX_SHAPE(2, 2)},
              {"ab,bc->ad", NULL, "'d'", MIX_SHAPE(2)},
              {"ab,cb->ab", NULL, "'c'", MIX_SHAPE(3)},
              {"ab,bc->ab", NULL, "'b'", MIX_SHAPE(7)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_layer *layer = mix_einsum_dense(.equation = rows[i].equation, .output_shape = rows[i].output,
                                        .bias_axes = rows[i].bias);
    expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                   rows[i].mentions);
  }
}

/* ---- configs, as real Keras writes them ---- */

static void configs(void **state) {
  (void)state;
  static const char *const expected[2][4] = {
      {"\"num_heads\": 2, \"key_dim\": 4, \"value_dim\": 4, \"dropout\": 0.0, \"use_bias\": true, "
       "\"output_shape\": null, \"attention_axes\": [1], \"kernel_initializer\": {\"module\": "
       "\"keras.initializers\", \"class_name\": \"GlorotUniform\", \"config\": {\"seed\": null}, "
       "\"registered_name\": null}, \"bias_initializer\": {\"module\": \"keras.initializers\", "
       "\"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": null}, \"kernel_regularizer\": null, "
       "\"bias_regularizer\": null, \"activity_regularizer\": null, \"kernel_constraint\": null, "
       "\"bias_constraint\": null, \"query_shape\": [2, 5, 8], \"key_shape\": [2, 5, 8], "
       "\"value_shape\": [2, 5, "
       "8], \"softmax_robust_masking\": false}",
       "\"dtype\": \"float32\", \"dropout\": 0.0, \"use_scale\": false, \"score_mode\": \"dot\"}",
       "\"dtype\": \"float32\", \"dropout\": 0.0, \"use_scale\": true}",
       "\"output_shape\": [null, 4], \"equation\": \"abc,cd->abd\", \"activation\": \"linear\", "
       "\"bias_axes\": "
       "\"d\", \"kernel_initializer\""},
      {"\"num_heads\": 2, \"key_dim\": 4, \"value_dim\": 4, \"dropout\": 0.0, \"use_bias\": true, "
       "\"use_gate\": false, \"output_shape\": null, \"attention_axes\": [1], \"sliding_window\": null, "
       "\"kernel_initializer\": {\"module\": \"keras.initializers\", \"class_name\": \"GlorotUniform\", "
       "\"config\": {\"seed\": null, \"input_axes\": null, \"output_axes\": null}, "
       "\"registered_name\": null}, "
       "\"bias_initializer\": {\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", "
       "\"config\": {}, "
       "\"registered_name\": null}, \"kernel_regularizer\": null, \"bias_regularizer\": null, "
       "\"activity_regularizer\": null, \"kernel_constraint\": null, \"bias_constraint\": null, "
       "\"seed\": null}",
       "\"use_scale\": false, \"score_mode\": \"dot\", \"dropout\": 0.0, \"seed\": null}",
       "\"use_scale\": true, \"dropout\": 0.0, \"seed\": null}",
       "\"output_shape\": [null, 4], \"equation\": \"abc,cd->abd\", \"activation\": \"linear\", "
       "\"bias_axes\": "
       "\"d\", \"kernel_initializer\""}};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layers[] = {
        mix_multi_head_attention(2, 4), mix_attention(), mix_additive_attention(),
        mix_einsum_dense(.equation = "abc,cd->abd", .output_shape = MIX_SHAPE(-1, 4), .bias_axes = "d")};
    mix_tensor *x = mix_fill(MIX_SHAPE(2, 5, 8), 1, MIX_FLOAT32);
    assert_non_null(mix_call(layers[0], x, .arguments = mix_list_of(x)));
    for (int i = 0; i < 4; i++)
      if (!strstr(mix_layer_config(layers[i]), expected[g][i]))
        fail_msg("%s is not in %s", expected[g][i], mix_layer_config(layers[i]));
    made_again(mix_multi_head_attention(2, 3, .value_dim = 5, .dropout = 0.5, .no_bias = true,
                                        .output_shape = MIX_SHAPE(2, 3), .attention_axes = MIX_AXES(1, 2),
                                        .kernel_regularizer = mix_regularizer_new("l2"),
                                        .bias_constraint = mix_constraint_new("non_neg")));
    made_again(mix_attention(.use_scale = true, .score_mode = "concat", .dropout = 0.25));
    made_again(mix_additive_attention(.no_scale = true, .dropout = 0.25));
    made_again(mix_einsum_dense(.equation = "ab...,bc->ac...", .output_shape = MIX_SHAPE(4)));
  }
  made_again(mix_grouped_query_attention(2, 4, 2, .use_gate = true, .sliding_window = 3, .seed = 5));
  made_again(mix_multi_head_attention(2, 3, .use_gate = true, .sliding_window = 3, .seed = 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(attention_scores_and_masks),
                                     TEST(dropout_draws_anew),
                                     TEST(multi_head_masks),
                                     TEST(given_masks_of_queries),
                                     TEST(given_masks_of_queries_in_tf_keras),
                                     TEST(robust_masking),
                                     TEST(cross_attention_by_its_formula),
                                     TEST(blocks_as_all_scores),
                                     TEST(L26_weights),
                                     TEST(refused_attention),
                                     TEST(activity_penalties),
                                     TEST(einsum_dense_shapes),
                                     TEST(einsum_dense_fans),
                                     TEST(refused_equations),
                                     TEST(configs)};
  return cmocka_run_group_tests_name("attention layers", tests, NULL, NULL);
}
