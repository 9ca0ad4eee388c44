/* A Transformer translates numbers from figures to English words, 4071 to "four thousand seventy one", in
 * mixed precision: two custom layers for positions, masks that pass by themselves, and greedy and beam
 * search.
 *
 *   12_transformer [POLICY [EPOCHS [SEED [STATE]]]]
 *
 * The policy is mixed_float16 if none is given; float32 trains the same network without mixed precision.
 * STATE is how the optimizer's slots are kept: float32, bfloat16, bfloat16-stochastic or bfloat16-kahan. */
#include <mixtape/mixtape.h>

#include "12_number_words.h"
#include "12_word_search.h"
#include <math.h>
#include <stdlib.h>

enum { UNITS = 64, HEADS = 4, LAYERS = 2 };

/* ---- two layers of our own ---- */

/* x (batch, positions, units) + sines and cosines of the positions: nothing to learn. */
static mix_list *sine_positions_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0),
             *position = mix_range(0, (double)mix_tensor_shape(x).dims[1], 1, MIX_FLOAT32);
  mix_tensor *wave = mix_range(0, UNITS / 2., 1, MIX_FLOAT32);
  mix_tensor *frequency = mix_exp(mix_multiply(wave, mix_scalar_like(wave, -log(1e4) / (UNITS / 2. - 1))));
  mix_tensor *angle = mix_multiply(mix_expand_dims(position, 1), frequency);
  mix_tensor *signal = mix_concat(2, (mix_tensor *[]){mix_sin(angle), mix_cos(angle)}, 1);
  /* The angles are float32: in float16 they would be wrong by whole turns. x may be float16. */
  return mix_list_of(mix_add(x, mix_cast(signal, mix_tensor_dtype(x))));
}
static const mix_layer_class sine_positions = {.size = sizeof(mix_layer_class),
                                               .name = "SinePositions",
                                               .call = sine_positions_call,
                                               .supports_masking = true};

/* x (batch, positions, units) + a learned row for each position. */
static mix_status position_embedding_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  mix_variable **rows = mix_layer_data(layer);
  *rows = mix_layer_add_weight(layer, "embeddings", .shape = MIX_SHAPE(shapes[0].dims[1], shapes[0].dims[2]));
  return mix_error();
}
static mix_list *position_embedding_call(mix_layer *layer, const mix_call_args *args) {
  mix_variable **rows = mix_layer_data(layer); /* read in the compute dtype */
  return mix_list_of(mix_add(mix_call_input(args, 0), mix_variable_value(*rows)));
}
static const mix_layer_class position_embedding = {.size = sizeof(mix_layer_class),
                                                   .name = "PositionEmbedding",
                                                   .instance_size = sizeof(mix_variable *),
                                                   .build = position_embedding_build,
                                                   .call = position_embedding_call,
                                                   .supports_masking = true};

/* ---- the model: figures and the words so far to the probabilities of the next word at each position ---- */

static mix_tensor *normalized(mix_tensor *x) {
  return mix_call(mix_layer_normalization(.epsilon = 1e-6, .dtype = "float32"), x);
}
static mix_tensor *add(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static mix_tensor *attend(mix_tensor *x, mix_tensor *memory, bool causal) {
  mix_tensor *query = normalized(x);
  mix_layer *attention = mix_multi_head_attention(HEADS, UNITS / HEADS);
  return add(x, mix_call(attention, query, .arguments = mix_list_of(memory ? memory : query),
                         .use_causal_mask = causal));
}
static mix_tensor *feed_forward(mix_tensor *x) {
  mix_tensor *y = mix_call(mix_dense(4 * UNITS, .activation = "relu"), normalized(x));
  return add(x, mix_call(mix_dense(UNITS), y));
}

static mix_model *build(void) {
  mix_tensor *figures = mix_input(.shape = MIX_SHAPE(FIGURES), .dtype = "int32", .name = "figures"),
             *words = mix_input(.shape = MIX_SHAPE(WORDS), .dtype = "int32", .name = "words");
  mix_tensor *memory = mix_call(mix_embedding(FIGURE_TOKENS, UNITS, .mask_zero = true), figures);
  memory = mix_call(mix_layer_new(&position_embedding), memory);
  for (int i = 0; i < LAYERS; i++) memory = feed_forward(attend(memory, NULL, false));
  memory = normalized(memory);
  mix_tensor *x = mix_call(mix_embedding(WORD_TOKENS, UNITS, .mask_zero = true), words);
  x = mix_call(mix_layer_new(&sine_positions), x);
  for (int i = 0; i < LAYERS; i++) x = feed_forward(attend(attend(x, NULL, true), memory, false));
  x = mix_call(mix_dense(WORD_TOKENS, .name = "logits"), normalized(x));
  return mix_model_new(mix_list_of(figures, words),
                       mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

int main(int argc, char **argv) {
  static pairs p;
  const char *policy = argc > 1 ? argv[1] : "mixed_float16";
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(argc > 3 ? (uint64_t)atoi(argv[3]) : 1);
  mix_set_global_policy(policy);
  make(&p);
  mix_model *model = build();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.state = argc > 4 ? argv[4] : NULL), .metrics = {"accuracy"});
  const int64_t rows = NUMBERS - TEST;
  mix_tensor *figures = mix_tensor_from(p.figures[TEST], MIX_INT32, MIX_SHAPE(rows, FIGURES)),
             *before = mix_tensor_from(p.before[TEST], MIX_INT32, MIX_SHAPE(rows, WORDS)),
             *words = mix_tensor_from(p.words[TEST], MIX_INT32, MIX_SHAPE(rows, WORDS));
  mix_model_fit(model, mix_list_of(figures, before), words, .batch_size = 64,
                .epochs = argc > 2 ? atoi(argv[2]) : 3, .verbose = 2);
  mix_function *function = mix_function_new(probabilities, model);
  score(function, &p, 1, policy);
  score(function, &p, BEAMS, policy);
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
