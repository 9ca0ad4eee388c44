/* Generation: greedy, by beams and by draws, for prompts of one length or several. The logits are those of
 * decoding: test_decode.c. */
#include "model/decode_support.h"

#include "base/alloc.h"
#include "base/philox.h"

/* The tokens of a result. */
static int32_t *tokens_of(mix_tensor *tensor, int64_t count) {
  static int32_t tokens[8][512];
  static int next;
  assert_no_error();
  assert_int_equal(mix_tensor_dtype(tensor), MIX_INT32);
  assert_int_equal(mix_shape_size(mix_tensor_shape(tensor)), count);
  next = (next + 1) % 8;
  assert_int_equal(mix_tensor_read(tensor, MIX_INT32, tokens[next], count), MIX_OK);
  return tokens[next];
}

/* The natural logarithms of the probabilities of what follows `count` tokens, by the whole window. */
static void follow(mix_model *model, const int32_t *tokens, int64_t count, double *found) {
  MIX_SCOPE {
    mix_tensor *p = mix_model_call(model, mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(1, count)));
    p = mix_log(mix_slice(p, MIX_SHAPE(0, count - 1, 0), MIX_SHAPE(1, 1, VOCABULARY)));
    assert_int_equal(mix_tensor_read(p, MIX_FLOAT64, found, VOCABULARY), MIX_OK);
  }
}

static mix_model *model_of(const char *generation) {
  mix_set_semantics(generation);
  mix_set_seed(8);
  return transformer("float64", MIX_UNKNOWN);
}

static void greedy_is_the_largest_each_time(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_model *model = model_of(generations[g]);
    const int32_t prompts[] = {3, 1, 4, 1, 5, 9, 2, 0, 0, 0, 6, 5, 3, 5, 0};
    const int64_t lengths[] = {5, 2, 4};
    mix_tensor *found = mix_generate(model, mix_tensor_from(prompts, MIX_INT32, MIX_SHAPE(3, 5)), .tokens = 9,
                                     .lengths = mix_tensor_from(lengths, MIX_INT64, MIX_SHAPE(3)));
    const int32_t *got = tokens_of(found, 3 * 14);
    for (int row = 0; row < 3; row++) {
      int32_t tokens[14];
      memcpy(tokens, &prompts[5 * row], sizeof *tokens * (size_t)lengths[row]);
      for (int64_t t = lengths[row]; t < 14; t++) {
        double p[VOCABULARY];
        follow(model, tokens, t, p);
        tokens[t] = 0;
        for (int i = 1; i < VOCABULARY; i++)
          if (p[i] > p[tokens[t]]) tokens[t] = i;
      }
      assert_memory_equal(got + 14 * row, tokens, sizeof tokens);
    }
  }
}

/* As many beams as there are beginnings find the best of all continuations. */
static void beams_find_the_best(void **state) {
  (void)state;
  mix_model *model = model_of("keras3");
  int32_t best[5] = {2, 7}, tokens[5] = {2, 7};
  double first[VOCABULARY], second[VOCABULARY], third[VOCABULARY], highest = -INFINITY, greedy = 0;
  follow(model, tokens, 2, first);
  for (int i = 0; i < VOCABULARY; i++) {
    tokens[2] = i;
    follow(model, tokens, 3, second);
    for (int k = 0; k < VOCABULARY; k++) {
      tokens[3] = k;
      follow(model, tokens, 4, third);
      for (tokens[4] = 0; tokens[4] < VOCABULARY; tokens[4]++)
        if (first[i] + second[k] + third[tokens[4]] > highest) {
          highest = first[i] + second[k] + third[tokens[4]];
          memcpy(best, tokens, sizeof best);
        }
    }
  }
  mix_tensor *prompt = mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(2)),
             *both = mix_concat(2, (mix_tensor *[]){mix_expand_dims(prompt, 0), some_tokens(1, 2)}, 0);
  assert_memory_equal(
      tokens_of(mix_generate(model, prompt, .tokens = 3, .beams = VOCABULARY * VOCABULARY), 5), best,
      sizeof best);
  /* Another prompt beside it changes nothing, nor does the end of one of them. */
  assert_memory_equal(tokens_of(mix_generate(model, both, .tokens = 3, .beams = VOCABULARY * VOCABULARY), 10),
                      best, sizeof best);
  const int32_t *plain = tokens_of(mix_generate(model, prompt, .tokens = 3), 5);
  for (int t = 2; t < 5; t++) {
    follow(model, plain, t, first);
    greedy += first[plain[t]];
  }
  assert_true(greedy <= highest + 1e-9);
}

/* An ended continuation keeps its sum; padding follows, and the result is as long as the longest. */
static void ends(void **state) {
  (void)state;
  mix_model *model = model_of("keras3");
  mix_tensor *prompt = some_tokens(3, 3);
  const int32_t *free = tokens_of(mix_generate(model, prompt, .tokens = 8), 33);
  const int32_t end = free[4];
  mix_tensor *ended =
      mix_generate(model, prompt, .tokens = 8, .end_tokens = MIX_SHAPE(VOCABULARY + 5, end), .pad_token = -7);
  const int64_t length = mix_tensor_shape(ended).dims[1];
  const int32_t *got = tokens_of(ended, 3 * length);
  int64_t longest = 0, ended_rows = 0;
  for (int row = 0; row < 3; row++) {
    bool over = false;
    for (int64_t t = 0; t < length; t++) {
      assert_int_equal(got[row * length + t], over ? -7 : free[row * 11 + t]);
      if (!over) longest = t + 1 > longest ? t + 1 : longest;
      over |= t >= 3 && got[row * length + t] == end;
    }
    ended_rows += over;
  }
  assert_int_equal(length, longest);
  assert_true(ended_rows > 0);
  /* All tokens end: one follows. The prompt's own do not count. */
  mix_shape all = {.rank = 8, .dims = {0, 1, 2, 3, 4, 5, 6, 7}};
  mix_model *few = mix_sequential(mix_list_of(mix_embedding(8, 4), mix_dense(8)));
  mix_model_call(few, mix_fill(MIX_SHAPE(1, 2), 1, MIX_INT32));
  for (int beams = 1; beams < 4; beams++)
    assert_int_equal(mix_tensor_shape(mix_generate(few, mix_fill(MIX_SHAPE(2), 1, MIX_INT32), .tokens = 6,
                                                   .end_tokens = all, .beams = beams))
                         .dims[0],
                     1);
  assert_int_equal(mix_tensor_shape(mix_generate(few, mix_fill(MIX_SHAPE(2), 1, MIX_INT32), .tokens = 6,
                                                 .end_tokens = all))
                       .dims[1],
                   3);
}

/* ---- draws ---- */

enum { DRAWS = 200 };

/* A model whose logits are the same behind all tokens. */
static mix_model *constant_logits(const double *logits, int count) {
  mix_set_semantics("keras3");
  mix_model *model = mix_sequential(mix_list_of(mix_embedding(count, 2), mix_dense(count, .name = "last")));
  mix_model_call(model, mix_fill(MIX_SHAPE(1, 2), 1, MIX_INT32));
  mix_list *weights = mix_model_weights(model);
  mix_variable *kernel = mix_list_get(weights, 1), *bias = mix_list_get(weights, 2);
  mix_variable_assign(kernel, mix_fill(MIX_SHAPE(2, count), 0, MIX_FLOAT32));
  mix_variable_assign(bias, mix_tensor_from_doubles(logits, MIX_FLOAT32, MIX_SHAPE(count)));
  assert_no_error();
  return model;
}

/* The draw of a sequence at a position, in [0, 1). */
static double draw(uint64_t seed, uint64_t position, uint64_t sequence) {
  const mix_philox words = mix_philox_block(seed, position, sequence);
  return ldexp((double)(((uint64_t)words.v[0] << 32 | words.v[1]) >> 11), -53);
}

/* Shares in the order in which they are walked through: those of the tokens `order`. */
static int32_t drawn(const int32_t *order, const double *shares, int count, double u) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    if ((sum += shares[i]) > u) return order[i];
  return order[count - 1];
}

static void draws_follow_philox(void **state) {
  (void)state;
  const double logits[5] = {log(2), log(4), log(8), log(4), log(2)};
  mix_model *model = constant_logits(logits, 5);
  static const struct {
    double temperature;
    int64_t top_k;
    double top_p;
    int32_t order[5];
    double weights[5];
    int count;
  } rows[] = {{1, 0, 0, {0, 1, 2, 3, 4}, {2, 4, 8, 4, 2}, 5},
              {0.5, 0, 0, {0, 1, 2, 3, 4}, {4, 16, 64, 16, 4}, 5},
              {0, 1, 0, {2}, {1}, 1},
              {0, 3, 0, {2, 1, 3}, {8, 4, 4}, 3},
              {1, 9, 0, {2, 1, 3, 0, 4}, {8, 4, 4, 2, 2}, 5},
              {0, 0, 0.39, {2}, {1}, 1},
              {0, 0, 0.55, {2, 1}, {8, 4}, 2},
              {0, 0, 0.7, {2, 1, 3}, {8, 4, 4}, 3},
              {0.5, 3, 0.7, {2, 1}, {64, 16}, 2},
              {0, 0, 1, {0, 1, 2, 3, 4}, {2, 4, 8, 4, 2}, 5}};
  const int threads = mix_threads();
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
    for (int several = 1; several <= 2; several++) {
      double shares[5], total = 0;
      for (int i = 0; i < rows[r].count; i++) total += rows[r].weights[i];
      for (int i = 0; i < rows[r].count; i++) shares[i] = rows[r].weights[i] / total;
      mix_set_threads(several);
      const int32_t *got = tokens_of(mix_generate(model, mix_fill(MIX_SHAPE(2, 1), 1, MIX_INT32),
                                                  .tokens = DRAWS, .temperature = rows[r].temperature,
                                                  .top_k = rows[r].top_k, .top_p = rows[r].top_p, .seed = 77),
                                     2 * (DRAWS + 1));
      for (int row = 0; row < 2; row++)
        for (int t = 1; t <= DRAWS; t++) {
          const double u = draw(77, (uint64_t)t, (uint64_t)row);
          assert_int_equal(got[row * (DRAWS + 1) + t], drawn(rows[r].order, shares, rows[r].count, u));
        }
    }
  mix_set_threads(threads);
}

/* A seed is derived from the global one where none is given. */
static void seeds(void **state) {
  (void)state;
  mix_model *model = model_of("keras3");
  mix_tensor *prompt = some_tokens(1, 2);
  const int32_t *runs[4];
  for (int i = 0; i < 4; i++) {
    if (i != 1) mix_set_seed(i < 3 ? 21 : 22);
    runs[i] = tokens_of(mix_generate(model, prompt, .tokens = 20, .temperature = 2), 22);
  }
  assert_memory_equal(runs[0], runs[2], 22 * sizeof **runs);
  assert_memory_not_equal(runs[0], runs[1], 22 * sizeof **runs);
  assert_memory_not_equal(runs[0], runs[3], 22 * sizeof **runs);
}

/* A state is used again, also after a run that failed. */
static void a_state_of_ones_own(void **state) {
  (void)state;
  mix_model *model = model_of("keras3"), *other = model_of("keras3");
  mix_decode_state *decode = mix_decode_state_new(model, .batch = 6, .window = 12);
  mix_tensor *prompt = some_tokens(2, 4);
  const int32_t *fresh = tokens_of(mix_generate(model, prompt, .tokens = 6, .beams = 3), 20);
  for (int i = 0; i < 2; i++)
    assert_memory_equal(tokens_of(mix_generate(model, prompt, .tokens = 6, .beams = 3, .state = decode), 20),
                        fresh, 20 * sizeof *fresh);
  assert_int_equal(mix_decode_position(decode), 9);
  expect_refused(mix_generate(model, prompt, .tokens = 6, .state = decode), MIX_VALUE_ERROR, "a batch of 6");
  expect_refused(mix_generate(other, prompt, .tokens = 6, .beams = 3, .state = decode), MIX_VALUE_ERROR,
                 "the state is of another model");
  expect_refused(mix_generate(model, prompt, .tokens = 10, .beams = 3, .state = decode), MIX_VALUE_ERROR,
                 "need a window of 13; it is 12");
}

static void bad_calls(void **state) {
  (void)state;
  mix_model *model = model_of("keras3");
  mix_tensor *prompt = some_tokens(2, 4);
#define REFUSED(mentions, ...) expect_refused(mix_generate(model, __VA_ARGS__), MIX_VALUE_ERROR, mentions)
  REFUSED("end_tokens has 9 items", prompt, .tokens = 2, .end_tokens = (mix_shape){.rank = 9});
  REFUSED("tokens is 0", prompt);
  REFUSED("tokens is -1", prompt, .tokens = -1);
  REFUSED("temperature is -1", prompt, .tokens = 2, .temperature = -1);
  REFUSED("temperature is nan", prompt, .tokens = 2, .temperature = NAN);
  REFUSED("top_k is -3", prompt, .tokens = 2, .top_k = -3);
  REFUSED("top_p is 1.5", prompt, .tokens = 2, .top_p = 1.5);
  REFUSED("beams is -1", prompt, .tokens = 2, .beams = -1);
  REFUSED("beams is 2, and temperature", prompt, .tokens = 2, .beams = 2, .top_k = 2);
  REFUSED("need a window of 5; it is 3", prompt, .tokens = 2, .window = 3);
  REFUSED("the prompt has shape (2, 4, 1)", mix_expand_dims(prompt, -1), .tokens = 2);
  REFUSED("the prompt has shape ()", mix_scalar(3, MIX_INT32), .tokens = 2);
  REFUSED("lengths has shape (3)", prompt, .tokens = 2, .lengths = mix_fill(MIX_SHAPE(3), 1, MIX_INT32));
  REFUSED("lengths[0] is 5; expected 1 to 4", prompt, .tokens = 2,
          .lengths = mix_fill(MIX_SHAPE(2), 5, MIX_INT32));
  REFUSED("lengths[0] is 0", prompt, .tokens = 2, .lengths = mix_fill(MIX_SHAPE(2), 0, MIX_INT32));
  expect_refused(mix_generate(model, NULL, .tokens = 2), MIX_TYPE_ERROR, "generate");
  expect_refused(mix_generate(model, mix_cast(prompt, MIX_FLOAT32), .tokens = 2), MIX_TYPE_ERROR,
                 "prompt is of dtype float32");
  expect_refused(mix_generate(NULL, prompt, .tokens = 2), MIX_TYPE_ERROR, "generate");
  mix_model *fixed = transformer("float32", WINDOW);
  expect_refused(mix_generate(fixed, prompt, .tokens = WINDOW), MIX_VALUE_ERROR, "has 24 positions");
  tokens_of(mix_generate(fixed, prompt, .tokens = WINDOW - 3), 2 * (WINDOW + 1)); /* the last is not fed */
  const double logits[3] = {1, NAN, 0};
  expect_refused(mix_generate(constant_logits(logits, 3), mix_fill(MIX_SHAPE(1), 1, MIX_INT32), .tokens = 2),
                 MIX_VALUE_ERROR, "a logit of prompt 0 is NaN at position 1");
}

/* Each allocation fails once: an error, and then the state gives what it gave before. */
static void memory_fails(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32");
  mix_tensor *x = causal(mix_multi_head_attention(1, 2), mix_call(mix_embedding(5, 4), tokens));
  mix_model *model = mix_model_new(tokens, mix_call(mix_dense(5), x));
  mix_tensor *prompt = mix_fill(MIX_SHAPE(1, 3), 2, MIX_INT32);
  const int32_t *expected = tokens_of(mix_generate(model, prompt, .tokens = 2, .beams = 2), 5);
  bool done = false;
  int failures = 0;
  for (int64_t after = 0; !done; after++) {
    MIX_SCOPE {
      mix_inject_allocation_failure(after);
      mix_tensor *found = mix_generate(model, prompt, .tokens = 2, .beams = 2);
      mix_inject_allocation_failure(-1);
      done = found != NULL;
      failures += !done;
      if (done)
        assert_memory_equal(tokens_of(found, 5), expected, 5 * sizeof *expected);
      else
        expect_error(MIX_MEMORY_ERROR, "");
    }
  }
  assert_true(failures > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(greedy_is_the_largest_each_time),
      TEST(beams_find_the_best),
      TEST(ends),
      TEST(draws_follow_philox),
      TEST(seeds),
      TEST(a_state_of_ones_own),
      TEST(bad_calls),
      TEST(memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
