/* GPT-2 learns a text by a small adapter (LoRA) under mixed_bfloat16, and goes on from a prompt.
 *
 *   21_finetune_gpt2 [FILE [STEPS [MODEL]]]
 *
 * FILE is any text (default: this file), whose bytes are the tokens. MODEL is a GPT2CausalLM of KerasHub, a
 * file or a folder; without one a small one is made here, and learns the text with all its weights first. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 32, BATCH = 16, RANK = 4 };

/* What KerasHub saves of a model, but its weights. */
static const char gpt2[] =
    "{\"module\": \"keras_hub.src.models.gpt2.gpt2_causal_lm\", \"class_name\": \"GPT2CausalLM\","
    " \"registered_name\": \"keras_hub>GPT2CausalLM\", \"config\": {\"name\": \"gpt2\", \"backbone\": {"
    " \"module\": \"keras_hub.src.models.gpt2.gpt2_backbone\", \"class_name\": \"GPT2Backbone\","
    " \"registered_name\": \"keras_hub>GPT2Backbone\", \"config\": {\"name\": \"gpt2_backbone\","
    " \"vocabulary_size\": 256, \"num_layers\": 2, \"num_heads\": 4, \"hidden_dim\": 64,"
    " \"intermediate_dim\": 256, \"dropout\": 0.0, \"max_sequence_length\": 32}}}}";

static unsigned char text[1 << 20];
static int64_t size;

/* A window of the text, and the same one byte later. */
static mix_list *windows(void *context, int64_t index) {
  static uint32_t noise = 1;
  (void)context, (void)index;
  int32_t ids[WINDOW], next[WINDOW], mask[WINDOW];
  noise = noise * 1664525u + 1013904223u;
  const int64_t begin = (int64_t)noise % (size - WINDOW - 1);
  for (int i = 0; i < WINDOW; i++) ids[i] = text[begin + i], next[i] = text[begin + i + 1], mask[i] = 1;
  const mix_shape shape = MIX_SHAPE(WINDOW);
  return mix_list_of(mix_dict_of("token_ids", mix_tensor_from(ids, MIX_INT32, shape), "padding_mask",
                                 mix_tensor_from(mask, MIX_INT32, shape)),
                     mix_tensor_from(next, MIX_INT32, shape));
}

static void train(mix_model *model, double learning_rate, int steps) {
  mix_loss *loss = mix_loss_new("sparse_categorical_crossentropy", .from_logits = true);
  mix_model_compile(model, .loss_object = loss, .optimizer = mix_adamw(.learning_rate = learning_rate));
  mix_model_fit(model, mix_dataset_batch(mix_dataset_from_generator(windows, NULL), BATCH), NULL, .epochs = 1,
                .steps_per_epoch = steps, .verbose = 2);
}

int main(int argc, char **argv) {
  const int steps = argc > 2 ? atoi(argv[2]) : 600;
  FILE *file = fopen(argc > 1 ? argv[1] : __FILE__, "rb");
  size = file ? (int64_t)fread(text, 1, sizeof text, file) : 0;
  if (file) fclose(file);
  if (size < 2 * WINDOW) return fprintf(stderr, "21_finetune_gpt2: no text of %d bytes\n", 2 * WINDOW), 1;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_semantics("keras3");
  mix_set_seed(1);
  mix_set_global_policy("mixed_bfloat16");
  mix_model *model = argc > 3 ? mix_model_load(argv[3]) : mix_model_from_json(gpt2);
  if (argc <= 3) train(model, 5e-3, steps);
  mix_layer_set_trainable(mix_model_layer(model), false);
  mix_model_enable_lora(model, RANK, .filter = "query|value"); /* the layers of KerasHub's enable_lora */
  train(model, 5e-3, steps);
  int32_t tokens[WINDOW];
  for (int i = 0; i < WINDOW; i++) tokens[i] = text[i];
  mix_tensor *prompt = mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(1, WINDOW / 2));
  mix_tensor *made = mix_generate(model, prompt, .tokens = WINDOW / 2);
  if (mix_tensor_read(made, MIX_INT32, tokens, WINDOW) == MIX_OK)
    for (int i = 0; i < WINDOW; i++) putchar(tokens[i]);
  printf("\n");
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
