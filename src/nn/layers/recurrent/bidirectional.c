/* Bidirectional: a layer forwards and one backwards over the same sequences (Schuster and Paliwal:
 * Bidirectional recurrent neural networks; IEEE Trans. Signal Processing 45(11), 1997). */
#include "base/error.h"
#include "nn/layers/recurrent/recurrent.h"
#include <stdio.h>
#include <string.h>

typedef struct bidirectional {
  mix_bidirectional_options options;
  mix_layer *forward, *backward; /* in the layer's list */
} bidirectional;

/* ---- making ---- */

/* "forward_lstm", not "forward_forward_lstm". */
static json_t *inner_name(const mix_layer *layer, const char *prefix) {
  char text[300];
  const size_t length = strlen(prefix);
  const bool has = !strncmp(layer->name, prefix, length);
  snprintf(text, sizeof text, "%s%s", has ? "" : prefix, layer->name);
  return json_string(text);
}

/* A layer of the same class and config, under another name, possibly in the other direction. */
static mix_layer *copy_layer(mix_layer *layer, const char *prefix, int backwards) {
  json_t *config = mix_layer_config_json(layer);
  if (!config) return NULL;
  mix_json_set(config, "name", inner_name(layer, prefix));
  if (backwards >= 0) mix_json_set(config, "go_backwards", json_boolean(backwards));
  mix_layer *copy = mix_layer_read(layer->kind, config, layer->semantics);
  json_decref(config);
  return copy;
}

static bool check_flags(const mix_layer *layer, const mix_rnn_flags *a, const mix_rnn_flags *b) {
  const char *what = a->stateful != b->stateful                   ? "stateful"
                     : a->return_sequences != b->return_sequences ? "return_sequences"
                     : a->return_state != b->return_state         ? "return_state"
                                                                  : NULL;
  if (a->go_backwards == b->go_backwards)
    mix_fail_value("%s: both layers have go_backwards %s; expected one that runs the other way", layer->name,
                   a->go_backwards ? "true" : "false");
  else if (what)
    mix_fail_value("%s: the layers differ in %s; expected the same", layer->name, what);
  return !mix_failed();
}

/* The inner layers as the weight paths of Keras name them; tf_keras also keeps the given one. */
static bool add_inner(mix_layer *layer, bidirectional *b) {
  b->forward->attribute = "forward_layer";
  b->backward->attribute = "backward_layer";
  if (layer->semantics->bidirectional_keeps_layer) b->options.layer->attribute = "layer";
  return mix_layer_add_layer(layer, b->forward) && mix_layer_add_layer(layer, b->backward);
}

static bool ready(mix_layer *layer) {
  bidirectional *b = layer->data;
  mix_layer *given = b->options.layer, *other = b->options.backward_layer;
  mix_rnn *wrapped = given ? mix_rnn_of(given) : NULL, *backward = other ? mix_rnn_of(other) : NULL;
  if (!wrapped || (other && !backward))
    return mix_fail_value("%s: layer '%s' of class %s does not run a cell; expected a recurrent layer",
                          layer->name,
                          wrapped ? other->name
                          : given ? given->name
                                  : "NULL",
                          wrapped ? other->class.name
                          : given ? given->class.name
                                  : "none");
  b->forward = copy_layer(given, "forward_", -1);
  b->backward =
      other ? other
            : copy_layer(given, "backward_",
                         layer->semantics->bidirectional_keeps_layer ? !wrapped->flags.go_backwards : true);
  if (!b->forward || !b->backward) return false;
  mix_rnn *f = mix_rnn_of(b->forward), *r = mix_rnn_of(b->backward);
  if (!check_flags(layer, &f->flags, &r->flags)) return false;
  f->flags.zero_output_for_mask = r->flags.zero_output_for_mask = f->flags.return_sequences;
  return add_inner(layer, b);
}

static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  bidirectional *b = layer->data;
  if (mix_layer_build(b->forward, inputs[0])) return mix_error();
  return mix_layer_build(b->backward, inputs[0]);
}

/* ---- calling ---- */

/* A half of the states. */
static mix_list *half(mix_list *states, int which) {
  if (!states) return NULL;
  const int count = mix_list_count(states) / 2;
  return mix_list_new(count, mix_list_items(states) + which * count);
}

static mix_tensor *merge(const char *mode, mix_tensor *x, mix_tensor *y) {
  if (!x || !y) return NULL;
  if (!strcmp(mode, "sum")) return mix_add(x, y);
  if (!strcmp(mode, "mul")) return mix_multiply(x, y);
  if (!strcmp(mode, "ave")) return mix_divide(mix_add(x, y), mix_scalar_like(x, 2));
  return mix_concat(2, (mix_tensor *[]){x, y}, -1);
}

static mix_tensor *merged_symbol(const char *mode, mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x);
  if (!strcmp(mode, "concat")) shape.dims[shape.rank - 1] *= 2;
  mix_node *node = mix_node_placeholder(mix_tensor_dtype(x), shape, true);
  mix_tensor *symbol = mix_tensor_of(node, 0);
  mix_release(node);
  return symbol;
}

/* Further inputs are states, as in tf_keras. */
static mix_list *states_of(const mix_call_args *args) {
  if (args->initial_state || mix_list_count(args->inputs) < 2) return args->initial_state;
  return mix_list_new(mix_list_count(args->inputs) - 1, mix_list_items(args->inputs) + 1);
}

static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  const bidirectional *b = layer->data;
  const char *mode = b->options.merge_mode;
  mix_list *states = states_of(args);
  if (mix_list_count(states) % 2)
    return mix_fail_value("%s: initial_state has %d tensors; expected as many for each direction",
                          layer->name, mix_list_count(states));
  mix_tensor *x = mix_call_input(args, 0), *mask = mix_call_mask(args);
  const mix_training training = args->training ? MIX_TRUE : MIX_FALSE;
  if (mix_failed()) return NULL;
  mix_list *masks = mask ? mix_list_of(mask) : NULL;
  mix_list *f =
      mix_layer_call_outputs(b->forward, mix_list_of(x), false, NULL, masks, half(states, 0), training, NULL);
  mix_list *r = mix_layer_call_outputs(b->backward, mix_list_of(x), false, NULL, masks, half(states, 1),
                                       training, &(mix_call_keywords){.steps_reversed = true});
  if (!f || !r) return NULL;
  mix_tensor *forward = mix_cast(mix_list_get(f, 0), layer->compute);
  mix_tensor *backward = mix_cast(mix_list_get(r, 0), layer->compute);
  mix_list *results = strcmp(mode, "none") ? mix_list_of(args->symbolic ? merged_symbol(mode, forward)
                                                                        : merge(mode, forward, backward))
                                           : mix_list_of(forward, backward);
  for (int i = 1; i < mix_list_count(f) && !mix_failed(); i++) mix_list_append(results, mix_list_get(f, i));
  for (int i = 1; i < mix_list_count(r) && !mix_failed(); i++) mix_list_append(results, mix_list_get(r, i));
  return mix_failed() ? NULL : results;
}

static mix_tensor *mask_of_result(mix_layer *layer, const mix_call_args *args) {
  const bidirectional *b = layer->data;
  return mix_rnn_of(b->forward)->flags.return_sequences ? mix_call_mask(args) : NULL;
}

/* ---- config ---- */

/* keras3 saves the forward layer, and both generations the other one only where it was given. */
static mix_status get_config(mix_layer *layer, mix_config *config) {
  const bidirectional *b = layer->data;
  mix_layer *saved = layer->semantics->bidirectional_keeps_layer ? b->options.layer : b->forward;
  if (!mix_json_set(config->object, "layer", mix_layer_object_json(saved, mix_layer_config_json(saved))))
    return mix_error();
  mix_layer *other = b->options.backward_layer;
  if (other)
    mix_json_set(config->object, "backward_layer",
                 mix_layer_object_json(other, mix_layer_config_json(other)));
  else
    json_object_del(config->object, "backward_layer");
  return mix_error();
}

static bool read_merge_mode(const mix_field *field, const json_t *value) {
  if (!json_is_null(value)) return mix_read_text(field, value);
  *(const char **)field->value = "none";
  return true;
}
static json_t *write_merge_mode(const mix_field *field) {
  const char *mode = *(const char **)field->value;
  return strcmp(mode, "none") ? mix_write_text(field) : json_null();
}
/* const char *: null is no merging */
static const mix_value_kind merge_mode = {
    "a string", sizeof(char *), mix_resolve_text, NULL, write_merge_mode, read_merge_mode, NULL};

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_bidirectional_options, merge_mode), &merge_mode, .text = "concat",
     .choices = "concat|sum|mul|ave|none"},
    {MIX_FIELD(mix_bidirectional_options, layer), &mix_field_layer, .required = true},
    {MIX_FIELD(mix_bidirectional_options, backward_layer), &mix_field_layer, .omit_none = MIX_ALWAYS},
    {0}};
MIX_LAYER_KIND(bidirectional, mix_bidirectional_options, .fields = fields, .ready = ready,
               .call_has_mask = true,
               MIX_LAYER_CLASS(.name = "Bidirectional", .instance_size = sizeof(bidirectional),
                               .build = build, .call = call, .get_config = get_config,
                               .supports_masking = true, .compute_mask = mask_of_result))
