/* CausalLM tasks of KerasHub generate the tokens that KerasHub's greedy sampler does, for prompts of several
 * lengths side by side; and what they generate is what the whole model predicts (docs/manual/kerashub.md). */
#include "model/support.h"

#include "base/alloc.h"
#include "model/recorded/hub_generate.inc"
#include "support/skip.h"

/* Element i of weight `number`: the formula of tests/oracle/hub_generate.py, in float32 as there. */
static float element(uint32_t i, uint32_t number) {
  uint32_t x = (i + number * 7919u) * 2654435761u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return (float)(x >> 8) / (float)(1 << 24) - 0.5f;
}

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), last = strlen(end);
  return length >= last && !strcmp(text + length - last, end);
}

static void set_weight(mix_variable *variable, uint32_t number) {
  const mix_shape shape = mix_variable_shape(variable);
  const char *name = mix_variable_name(variable);
  const int64_t count = mix_shape_size(shape);
  const float offset = shape.rank == 1 && (ends_with(name, "/gamma") || ends_with(name, "/scale")) ? 1 : 0;
  float *values = mix_calloc((size_t)count, sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = element((uint32_t)i, number) * 0.8f + offset;
  assert_int_equal(mix_variable_assign(variable, mix_tensor_from(values, MIX_FLOAT32, shape)), MIX_OK);
  mix_free(values);
}

static mix_model *model_of(const char *json) {
  mix_model *model = mix_model_from_json(json);
  assert_no_error();
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++) set_weight(mix_list_get(weights, i), (uint32_t)i);
  return model;
}

/* The first tokens of each row, then zeros. */
static mix_tensor *prompts_of(const int32_t *tokens, int64_t longest) {
  int32_t prompts[PROMPTS * LENGTH] = {0};
  for (int64_t row = 0; row < PROMPTS; row++)
    memcpy(prompts + row * longest, tokens + row * LENGTH, sizeof *tokens * (size_t)lengths[row]);
  return mix_tensor_from(prompts, MIX_INT32, MIX_SHAPE(PROMPTS, longest));
}

static void tokens_are_kerashubs(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  enum { LONGEST = 6 };
  mix_set_semantics("keras3");
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
    MIX_SCOPE {
      mix_model *model = model_of(recorded[i].json);
      mix_tensor *found =
          mix_generate(model, prompts_of(recorded[i].tokens, LONGEST), .tokens = LENGTH - LONGEST,
                       .lengths = mix_tensor_from(lengths, MIX_INT64, MIX_SHAPE(PROMPTS)));
      int32_t tokens[PROMPTS * LENGTH];
      assert_no_error();
      assert_int_equal(mix_tensor_read(found, MIX_INT32, tokens, PROMPTS * LENGTH), MIX_OK);
      if (memcmp(tokens, recorded[i].tokens, sizeof tokens)) {
        for (int k = 0; k < PROMPTS * LENGTH; k++) print_error("%d ", (int)tokens[k]);
        fail_msg("%s: the tokens are others than KerasHub's", recorded[i].family);
      }
    }
}

/* Logits of parts are those of the whole sequence but for roundings: of float32 by 1e-5 of the largest (sums
 * of 24 products and 12 probabilities). */
static void decoded_logits_are_those_of_the_model(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  mix_set_semantics("keras3");
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
    MIX_SCOPE {
      mix_model *model = model_of(recorded[i].json);
      mix_tensor *tokens = mix_tensor_from(recorded[i].tokens, MIX_INT32, MIX_SHAPE(PROMPTS, LENGTH));
      mix_tensor *mask = mix_fill(MIX_SHAPE(PROMPTS, LENGTH), 1, MIX_INT32);
      mix_tensor *whole = mix_list_get(
          mix_model_call_outputs(model, mix_dict_of("token_ids", tokens, "padding_mask", mask)), 0);
      mix_decode_state *decoder = mix_decode_state_new(model, .batch = PROMPTS, .window = LENGTH);
      mix_tensor *parts[3];
      for (int64_t part = 0, begin = 0; part < 3; part++) {
        const int64_t count = part ? (part == 1 ? 1 : LENGTH - 6) : 5;
        parts[part] = mix_decode(decoder, mix_slice(tokens, MIX_SHAPE(0, begin), MIX_SHAPE(PROMPTS, count)));
        assert_no_error();
        begin += count;
      }
      enum { COUNT = PROMPTS * LENGTH * VOCABULARY };
      static float got[COUNT], expected[COUNT];
      assert_int_equal(mix_tensor_read(mix_concat(3, parts, 1), MIX_FLOAT32, got, COUNT), MIX_OK);
      assert_int_equal(mix_tensor_read(whole, MIX_FLOAT32, expected, COUNT), MIX_OK);
      float largest = 0;
      for (int k = 0; k < COUNT; k++) largest = fmaxf(largest, fabsf(expected[k]));
      for (int k = 0; k < COUNT; k++)
        if (!(fabsf(got[k] - expected[k]) <= 1e-5f * largest))
          fail_msg("%s: logit %d is %.9g, expected %.9g", recorded[i].family, k, (double)got[k],
                   (double)expected[k]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(tokens_are_kerashubs), TEST(decoded_logits_are_those_of_the_model)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
