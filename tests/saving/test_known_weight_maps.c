/* The library's weight maps: small files with the names that transformers saves become the weights of
 * KerasHub's classes. tests/oracle/hugging_face.py compares with KerasHub's own reading of such files. */
#include "model/support.h"

#include "formats/safetensors.h"
#include "saving/weight_map.h"
#include "support/expect.h"
#include "support/folder.h"
#include "support/skip.h"
#include "tensor/shape.h"

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }
#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

enum { V = 5, T = 6, E = 4, F = 3, HEADS = 2, D = 2, LAYERS = 2, MOST_TENSORS = 64 };

/* A tensor of the file, and the weight that is made of it: element (i, j, k) of the weight is element begin +
 * i * strides[0] + j * strides[1] + k * strides[2]. "%d" stands for the layer. */
typedef struct row {
  const char *tensor;
  int64_t shape[2]; /* 0: rank 1 */
  const char *weight;
  int64_t begin, strides[3];
} row;

#define LAYER "transformer_layer_%d/"
#define ATTENTION LAYER "self_attention/"
static const row gpt2[] = {
    {"wte.weight", {V, E}, "token_embedding/embeddings", 0, {E, 1}},
    {"wpe.weight", {T, E}, "position_embedding/embeddings", 0, {E, 1}},
    {"h.%d.ln_1.weight", {E}, LAYER "self_attention_layer_norm/gamma", 0, {1}},
    {"h.%d.ln_1.bias", {E}, LAYER "self_attention_layer_norm/beta", 0, {1}},
    {"h.%d.attn.c_attn.weight", {E, 3 * E}, ATTENTION "query/kernel", 0, {3 * E, D, 1}},
    {"h.%d.attn.c_attn.bias", {3 * E}, ATTENTION "query/bias", 0, {D, 1}},
    {NULL, {0}, ATTENTION "key/kernel", E, {3 * E, D, 1}},
    {NULL, {0}, ATTENTION "value/bias", 2 * E, {D, 1}},
    {"h.%d.attn.c_proj.weight", {E, E}, ATTENTION "attention_output/kernel", 0, {D * E, E, 1}},
    {"h.%d.attn.c_proj.bias", {E}, ATTENTION "attention_output/bias", 0, {1}},
    {"h.%d.attn.bias", {T, T}, NULL, 0, {0}},
    {"h.%d.ln_2.weight", {E}, LAYER "feedforward_layer_norm/gamma", 0, {1}},
    {"h.%d.ln_2.bias", {E}, LAYER "feedforward_layer_norm/beta", 0, {1}},
    {"h.%d.mlp.c_fc.weight", {E, F}, LAYER "feedforward_intermediate_dense/kernel", 0, {F, 1}},
    {"h.%d.mlp.c_fc.bias", {F}, LAYER "feedforward_intermediate_dense/bias", 0, {1}},
    {"h.%d.mlp.c_proj.weight", {F, E}, LAYER "feedforward_output_dense/kernel", 0, {E, 1}},
    {"h.%d.mlp.c_proj.bias", {E}, LAYER "feedforward_output_dense/bias", 0, {1}},
    {"ln_f.weight", {E}, "layer_norm/gamma", 0, {1}},
    {"ln_f.bias", {E}, "layer_norm/beta", 0, {1}},
    {0}};
static const row llama[] = {
    {"embed_tokens.weight", {V, E}, "token_embedding/embeddings", 0, {E, 1}},
    {"lm_head.weight", {V, E}, "token_embedding/reverse_embeddings", 0, {1, E}},
    {"layers.%d.self_attn.q_proj.weight", {E, E}, ATTENTION "query/kernel", 0, {1, D *E, E}},
    {"layers.%d.self_attn.k_proj.weight", {D, E}, ATTENTION "key/kernel", 0, {1, D *E, E}},
    {"layers.%d.self_attn.v_proj.weight", {D, E}, ATTENTION "value/kernel", 0, {1, D *E, E}},
    {"layers.%d.self_attn.o_proj.weight", {E, E}, ATTENTION "attention_output/kernel", 0, {D, 1, E}},
    {"layers.%d.input_layernorm.weight", {E}, LAYER "self_attention_layernorm/scale", 0, {1}},
    {"layers.%d.post_attention_layernorm.weight", {E}, LAYER "feedforward_layernorm/scale", 0, {1}},
    {"layers.%d.mlp.gate_proj.weight", {F, E}, LAYER "feedforward_gate_dense/kernel", 0, {1, E}},
    {"layers.%d.mlp.up_proj.weight", {F, E}, LAYER "feedforward_intermediate_dense/kernel", 0, {1, E}},
    {"layers.%d.mlp.down_proj.weight", {E, F}, LAYER "feedforward_output_dense/kernel", 0, {1, F}},
    {"norm.weight", {E}, "sequence_output_layernorm/scale", 0, {1}},
    {0}};
#define BERT LAYER "self_attention_layer/"
static const row bert[] = {
    {"embeddings.word_embeddings.weight", {V, E}, "token_embedding/embeddings", 0, {E, 1}},
    {"embeddings.position_embeddings.weight", {T, E}, "position_embedding/embeddings", 0, {E, 1}},
    {"embeddings.token_type_embeddings.weight", {2, E}, "segment_embedding/embeddings", 0, {E, 1}},
    {"embeddings.LayerNorm.gamma", {E}, "embeddings_layer_norm/gamma", 0, {1}},
    {"embeddings.LayerNorm.beta", {E}, "embeddings_layer_norm/beta", 0, {1}},
    {"encoder.layer.%d.attention.self.query.weight", {E, E}, BERT "query/kernel", 0, {1, D *E, E}},
    {"encoder.layer.%d.attention.self.query.bias", {E}, BERT "query/bias", 0, {D, 1}},
    {"encoder.layer.%d.attention.self.key.weight", {E, E}, BERT "key/kernel", 0, {1, D *E, E}},
    {"encoder.layer.%d.attention.self.key.bias", {E}, BERT "key/bias", 0, {D, 1}},
    {"encoder.layer.%d.attention.self.value.weight", {E, E}, BERT "value/kernel", 0, {1, D *E, E}},
    {"encoder.layer.%d.attention.self.value.bias", {E}, BERT "value/bias", 0, {D, 1}},
    {"encoder.layer.%d.attention.output.dense.weight", {E, E}, BERT "attention_output/kernel", 0, {D, 1, E}},
    {"encoder.layer.%d.attention.output.dense.bias", {E}, BERT "attention_output/bias", 0, {1}},
    {"encoder.layer.%d.attention.output.LayerNorm.weight",
     {E},
     LAYER "self_attention_layer_norm/gamma",
     0,
     {1}},
    {"encoder.layer.%d.attention.output.LayerNorm.bias", {E}, LAYER "self_attention_layer_norm/beta", 0, {1}},
    {"encoder.layer.%d.intermediate.dense.weight",
     {F, E},
     LAYER "feedforward_intermediate_dense/kernel",
     0,
     {1, E}},
    {"encoder.layer.%d.intermediate.dense.bias", {F}, LAYER "feedforward_intermediate_dense/bias", 0, {1}},
    {"encoder.layer.%d.output.dense.weight", {E, F}, LAYER "feedforward_output_dense/kernel", 0, {1, F}},
    {"encoder.layer.%d.output.dense.bias", {E}, LAYER "feedforward_output_dense/bias", 0, {1}},
    {"encoder.layer.%d.output.LayerNorm.weight", {E}, LAYER "feedforward_layer_norm/gamma", 0, {1}},
    {"encoder.layer.%d.output.LayerNorm.bias", {E}, LAYER "feedforward_layer_norm/beta", 0, {1}},
    {"pooler.dense.weight", {E, E}, "pooled_dense/kernel", 0, {1, E}},
    {"pooler.dense.bias", {E}, "pooled_dense/bias", 0, {1}},
    {"cls.predictions.bias", {V}, NULL, 0, {0}},
    {0}};

#define OBJECT(folder, file, class, config)                                                                  \
  "{\"module\":\"keras_hub.src.models." folder "." file                                                      \
  "\",\"class_name\":\"" class "\",\"registered_name\":\"keras_hub>" class                                   \
      "\",\"config\":{\"name\":\"b\",\"vocabulary_size\":5,"                                                 \
      "\"num_layers\":2,\"hidden_dim\":4,\"intermediate_dim\":3," config "}}"
static const struct {
  const char *map, *prefix, *json;
  const row *rows;
} families[] = {
    {"gpt2", "transformer.",
     OBJECT("gpt2", "gpt2_backbone", "GPT2Backbone",
            "\"num_heads\":2,\"dropout\":0.1,\"max_sequence_length\":6"),
     gpt2},
    {"llama", "model.",
     OBJECT("llama", "llama_backbone", "LlamaBackbone", "\"num_query_heads\":2,\"num_key_value_heads\":1"),
     llama},
    {"bert", "bert.",
     OBJECT("bert", "bert_backbone", "BertBackbone",
            "\"num_heads\":2,\"dropout\":0.1,\"max_sequence_length\":6,\"num_segments\":2"),
     bert},
};

/* Element i of tensor number `tensor`. */
static float element(int tensor, int64_t i) { return (float)(1000 * tensor + i); }

/* Each tensor of the rows, of each layer where the name has one; its number is 100 * row + layer. */
static void write_file(const char *path, const row *rows, const char *prefix) {
  static char names[MOST_TENSORS][120];
  const char *listed[MOST_TENSORS];
  mix_tensor *tensors[MOST_TENSORS];
  int count = 0;
  for (int r = 0; rows[r].tensor || rows[r].weight; r++)
    for (int layer = 0; rows[r].tensor && layer < (strchr(rows[r].tensor, '%') ? LAYERS : 1); layer++) {
      const bool matrix = rows[r].shape[1];
      float values[64];
      const int64_t size = rows[r].shape[0] * (matrix ? rows[r].shape[1] : 1);
      assert_true(size <= 64 && count < MOST_TENSORS);
      for (int64_t i = 0; i < size; i++) values[i] = element(100 * r + layer, i);
      char name[100];
      snprintf(name, sizeof name, "%s", rows[r].tensor);
      char *digit = strstr(name, "%d");
      if (digit) {
        digit[0] = (char)('0' + layer);
        memmove(digit + 1, digit + 2, strlen(digit + 2) + 1);
      }
      snprintf(names[count], sizeof names[count], "%s%s", prefix, name);
      listed[count] = names[count];
      tensors[count++] = mix_tensor_from(values, MIX_FLOAT32,
                                         matrix ? MIX_SHAPE(rows[r].shape[0], rows[r].shape[1])
                                                : MIX_SHAPE(rows[r].shape[0]));
    }
  assert_true(mix_safetensors_write("test", path, count, listed, tensors));
}

static void assert_weight(mix_model *model, const row *rows, int r, int layer) {
  char name[120];
  int tensor = r;
  while (!rows[tensor].tensor) tensor--;
  if (!rows[r].tensor && strstr(rows[r].weight, "kernel")) tensor--; /* the kernel stands before its bias */
  snprintf(name, sizeof name, "%s", rows[r].weight);
  char *digit = strstr(name, "%d");
  if (digit) {
    digit[0] = (char)('0' + layer);
    memmove(digit + 1, digit + 2, strlen(digit + 2) + 1);
  }
  mix_variable *variable = variable_at(model, name);
  assert_non_null(variable);
  const mix_shape shape = mix_variable_shape(variable);
  float values[64];
  int64_t sizes[3] = {1, 1, 1}, at = 0;
  for (int i = 0; i < shape.rank; i++) sizes[i] = shape.dims[i];
  assert_int_equal(mix_tensor_read(mix_variable_value(variable), MIX_FLOAT32, values, mix_shape_size(shape)),
                   MIX_OK);
  for (int64_t i = 0; i < sizes[0]; i++)
    for (int64_t j = 0; j < sizes[1]; j++)
      for (int64_t k = 0; k < sizes[2]; k++, at++) {
        const int64_t *strides = rows[r].strides;
        const int64_t source = rows[r].begin + i * strides[0] + j * strides[1] + k * strides[2];
        if (values[at] != element(100 * tensor + layer, source))
          fail_msg("%s: element %lld is %g, expected %g", name, (long long)at, (double)values[at],
                   (double)element(100 * tensor + layer, source));
      }
}

/* With the prefix of a model that has a head, and without. */
static void weights_are_those_of_the_tensors(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  mix_set_semantics("keras3");
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (int with_prefix = 0; with_prefix < 2; with_prefix++)
      MIX_SCOPE {
        const char *path = in_folder("model.safetensors");
        const row *rows = families[f].rows;
        write_file(path, rows, with_prefix ? families[f].prefix : "");
        mix_model *model = mix_model_from_json(families[f].json);
        assert_no_error();
        mix_model_load_weights_with(model,
                                    &(mix_load_weights_options){.size = sizeof(mix_load_weights_options),
                                                                .path = path,
                                                                .weight_map = families[f].map});
        assert_no_error();
        for (int r = 0; rows[r].tensor || rows[r].weight; r++)
          for (int layer = 0; rows[r].weight && layer < (strchr(rows[r].weight, '%') ? LAYERS : 1); layer++)
            assert_weight(model, rows, r, layer);
      }
}

/* The tensor of the first file: behind the prefix, and in old files of BERT with gamma and beta. */
static const mix_stored_tensor *of_first_file(const mix_safetensors *file, const char *prefix,
                                              const char *name) {
  static const char *const ends[][2] = {{"", ""}, {".weight", ".gamma"}, {".bias", ".beta"}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char changed[200];
    const size_t length = strlen(name), end = strlen(ends[i][0]);
    if (length < end || strcmp(name + length - end, ends[i][0])) continue;
    snprintf(changed, sizeof changed, "%s%.*s%s", prefix, (int)(length - end), name, ends[i][1]);
    const mix_stored_tensor *found = mix_safetensors_find(file, changed);
    if (found) return found;
  }
  fail_msg("no '%s%s' in the file that was read", prefix, name);
  return NULL;
}

/* The map backwards: every tensor that is a weight has its bits again, in its shape. */
static void tensors_are_written_as_they_were_read(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  mix_set_semantics("keras3");
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    MIX_SCOPE {
      const row *rows = families[f].rows;
      char first[512];
      snprintf(first, sizeof first, "%s", in_folder("model.safetensors"));
      const char *again = in_folder("again.safetensors");
      write_file(first, rows, families[f].prefix);
      mix_model *model = mix_model_from_json(families[f].json);
      mix_model_load_weights_with(model, &(mix_load_weights_options){.size = sizeof(mix_load_weights_options),
                                                                     .path = first,
                                                                     .weight_map = families[f].map});
      mix_model_save_weights_with(model, &(mix_save_weights_options){.size = sizeof(mix_save_weights_options),
                                                                     .path = again,
                                                                     .weight_map = families[f].map});
      assert_no_error();
      mix_safetensors *read = mix_safetensors_open(first, false),
                      *written = mix_safetensors_open(again, false);
      int left = 0;
      for (int r = 0; rows[r].tensor || rows[r].weight; r++)
        if (rows[r].tensor && !rows[r].weight) left += strchr(rows[r].tensor, '%') ? LAYERS : 1;
      assert_int_equal(mix_safetensors_count(written), mix_safetensors_count(read) - left);
      for (int i = 0; i < mix_safetensors_count(written); i++) {
        const mix_stored_tensor *b = mix_safetensors_at(written, i),
                                *a = of_first_file(read, families[f].prefix, b->name);
        assert_int_equal(a->dtype, b->dtype);
        assert_true(mix_shape_equal(a->shape, b->shape) && a->bytes == b->bytes);
        assert_memory_equal(mix_tensor_data(mix_stored_tensor_value(a)),
                            mix_tensor_data(mix_stored_tensor_value(b)), a->bytes);
      }
    }
}

/* lm_head.weight of a model that has its table in its place: left where it equals that, else refused. */
static void an_output_that_is_no_copy_of_the_table(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  mix_set_semantics("keras3");
  static const struct {
    const char *map, *json, *table, *prefix;
    const row *rows;
  } tied[] = {{"gpt2", NULL, "wte.weight", "transformer.", gpt2},
              {"llama",
               OBJECT("llama", "llama_backbone", "LlamaBackbone",
                      "\"num_query_heads\":2,\"num_key_value_heads\":1,\"tie_word_embeddings\":true"),
               "embed_tokens.weight", "model.", llama}};
  for (int f = 0; f < 2; f++)
    for (int differs = 0; differs < 2; differs++)
      MIX_SCOPE {
        row rows[64] = {0};
        int count = 0;
        for (const row *r = tied[f].rows; r->tensor || r->weight; r++)
          if (!r->tensor || strcmp(r->tensor, "lm_head.weight") != 0) rows[count++] = *r;
        const char *path = in_folder("tied.safetensors"), *both = in_folder("head.safetensors");
        write_file(path, rows, tied[f].prefix);
        mix_safetensors *file = mix_safetensors_open(path, false);
        const char *names[MOST_TENSORS + 1];
        mix_tensor *tensors[MOST_TENSORS + 1];
        char table[100];
        snprintf(table, sizeof table, "%s%s", tied[f].prefix, tied[f].table);
        const int stored = mix_safetensors_count(file);
        for (int i = 0; i < stored; i++) {
          names[i] = mix_safetensors_at(file, i)->name;
          tensors[i] = mix_stored_tensor_value(mix_safetensors_at(file, i));
          if (!strcmp(names[i], table)) tensors[stored] = tensors[i];
        }
        names[stored] = "lm_head.weight";
        if (differs) tensors[stored] = mix_add(tensors[stored], mix_scalar(1, MIX_FLOAT32));
        assert_true(mix_safetensors_write("test", both, stored + 1, names, tensors));
        mix_model *model = mix_model_from_json(tied[f].json ? tied[f].json : families[0].json);
        assert_no_error();
        const mix_load_weights_options options = {
            .size = sizeof options, .path = both, .weight_map = tied[f].map};
        mix_model_load_weights_with(model, &options);
        if (differs)
          expect_error(MIX_VALUE_ERROR, "tie_word_embeddings");
        else
          assert_no_error();
      }
}

/* Members of maps that name several tensors. */
static void lists_of_names(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } bad[] = {
      {"{\"rules\":[],\"prefixes\":[]}", "prefixes is another list"},
      {"{\"rules\":[],\"prefixes\":[1]}", "prefixes is another list"},
      {"{\"rules\":[],\"prefixes\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}", "a list of up to 4"},
      {"{\"rules\":[{\"weight\":\"a\",\"tensor\":[\"b\",\"\\\\1\"]}]}", "of which weight has 0"},
      {"{\"rules\":[],\"leave\":[{\"tensor\":\"a\"}]}", "equal in an item of leave is missing"},
      {"{\"rules\":[],\"leave\":[{\"tensor\":3,\"equal\":\"b\"}]}", "an item of leave is an integer"},
      {"{\"rules\":[],\"leave\":[{\"tensor\":\"a\",\"equal\":\"b\",\"c\":1}]}", "member is called 'c'"},
      {"{\"rules\":[{\"weight\":\"a\",\"tensor\":3}]}", "tensor is an integer"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *path = in_folder("map.json");
    FILE *file = fopen(path, "w");
    fputs(bad[i].text, file);
    fclose(file);
    assert_null(mix_weight_map_read(path, "test"));
    expect_error(MIX_VALUE_ERROR, bad[i].message);
  }
  assert_null(mix_weight_map_read("gpt3", "test"));
  expect_error(MIX_IO_ERROR, "gpt3");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(weights_are_those_of_the_tensors), FILE_TEST(tensors_are_written_as_they_were_read),
      FILE_TEST(an_output_that_is_no_copy_of_the_table), FILE_TEST(lists_of_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
