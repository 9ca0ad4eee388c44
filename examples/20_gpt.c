/* A small GPT learns the characters of a text, each from those before it, under mixed_float16, and goes on
 * from a prompt: each character alone, with the keys and values of those before kept.
 *
 *   20_gpt [FILE [STEPS [PROMPT]]]
 *
 * FILE is any text (default: this file). */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 64, HEADS = 4, LAYERS = 2, WINDOW = 64, BATCH = 32, CHARACTERS = 256 };

/* ---- x (batch, positions, units) + a learned row for each position ---- */

static mix_status positions_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  mix_variable **rows = mix_layer_data(layer);
  *rows = mix_layer_add_weight(layer, "rows", .shape = MIX_SHAPE(WINDOW, shapes[0].dims[2]),
                               .initializer = "random_uniform");
  return mix_error();
}
static mix_list *positions_call(mix_layer *layer, const mix_call_args *args) {
  mix_variable **rows = mix_layer_data(layer);
  mix_tensor *own = mix_gather(mix_variable_value(*rows), mix_call_positions(args), 0);
  return own ? mix_list_of(mix_add(mix_call_input(args, 0), own)) : NULL;
}
static const mix_layer_class positions = {.size = sizeof(mix_layer_class),
                                          .name = "Positions",
                                          .instance_size = sizeof(mix_variable *),
                                          .build = positions_build,
                                          .call = positions_call,
                                          .decodes = true};

/* ---- the model ---- */

static mix_tensor *normalized(mix_tensor *x) { return mix_call(mix_layer_normalization(.epsilon = 1e-5), x); }
static mix_tensor *add(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static mix_tensor *block(mix_tensor *x) {
  mix_tensor *y = normalized(x);
  y = mix_call(mix_multi_head_attention(HEADS, UNITS / HEADS), y, .arguments = mix_list_of(y),
               .use_causal_mask = true);
  x = add(x, y);
  y = mix_call(mix_dense(4 * UNITS, "gelu"), normalized(x));
  return add(x, mix_call(mix_dense(UNITS), y));
}
static mix_model *build(void) {
  mix_tensor *text = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32", .name = "text");
  mix_tensor *x = mix_call(mix_embedding(CHARACTERS, UNITS), text);
  x = mix_call(mix_layer_new(&positions), x);
  for (int i = 0; i < LAYERS; i++) x = block(x);
  x = mix_call(mix_dense(CHARACTERS, .name = "logits"), normalized(x));
  return mix_model_new(text, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

/* ---- the text: windows of it, and the same one character later ---- */

static unsigned char text[1 << 20];

static int64_t read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  const size_t size = file ? fread(text, 1, sizeof text, file) : 0;
  if (file) fclose(file);
  if (size > 2 * WINDOW) return (int64_t)size;
  fprintf(stderr, "20_gpt: '%s' has %zu characters; expected a text of more than %d\n", path, size,
          2 * WINDOW);
  return 0;
}

static mix_list *windows(void *size, int64_t index) {
  static uint32_t noise = 1;
  (void)index;
  int32_t x[WINDOW], y[WINDOW];
  noise = noise * 1664525u + 1013904223u;
  const int64_t begin = (int64_t)noise % (*(int64_t *)size - WINDOW - 1);
  for (int i = 0; i < WINDOW; i++) x[i] = text[begin + i], y[i] = text[begin + i + 1];
  return mix_list_of(mix_tensor_from(x, MIX_INT32, MIX_SHAPE(WINDOW)),
                     mix_tensor_from(y, MIX_INT32, MIX_SHAPE(WINDOW)));
}

static void print_row(mix_tensor *tokens) {
  int32_t row[WINDOW + 1];
  const int64_t length = mix_tensor_shape(tokens).dims[1];
  if (mix_tensor_read(tokens, MIX_INT32, row, length)) return;
  for (int64_t i = 0; i < length; i++) putchar(row[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  const int steps = argc > 2 ? atoi(argv[2]) : 2000;
  const char *prompt = argc > 3 ? argv[3] : "static ";
  int64_t size = read_text(argc > 1 ? argv[1] : __FILE__);
  if (!size) return 1;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_semantics("keras3");
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  mix_model *model = build();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 2e-3), .metrics = {"accuracy"});
  mix_dataset *data = mix_dataset_batch(mix_dataset_from_generator(windows, &size), BATCH);
  mix_model_fit(model, data, NULL, .epochs = 1, .steps_per_epoch = steps, .verbose = 2);
  int32_t start[WINDOW];
  int64_t length = 0;
  for (; prompt[length] && length < WINDOW / 2; length++) start[length] = (unsigned char)prompt[length];
  mix_tensor *tokens = mix_tensor_from(start, MIX_INT32, MIX_SHAPE(1, length));
  printf("greedy:\n");
  print_row(mix_generate(model, tokens, .tokens = WINDOW + 1 - length));
  printf("drawn, of the 5 largest at temperature 0.8:\n");
  print_row(
      mix_generate(model, tokens, .tokens = WINDOW + 1 - length, .temperature = 0.8, .top_k = 5, .seed = 1));
  printf("4 beams:\n");
  print_row(mix_generate(model, tokens, .tokens = 40, .beams = 4));
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
