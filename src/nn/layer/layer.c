/* Creation of layers, and their properties. */
#include "nn/layer/layer.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "compile/generator.h"
#include "nn/config.h"
#include "nn/fields.h"
#include "nn/layer/building.h"
#include "nn/layer/registry.h"
#include "nn/layer/remat.h"
#include "nn/policy/quantization.h"
#include <stdio.h>
#include <string.h>

/* ---- options ---- */

static const mix_field_row common_fields[] = {
    {MIX_FIELD(mix_layer_common, name), &mix_field_text},
    {"trainable", offsetof(mix_layer_common, not_trainable), &mix_field_negated},
    {"dtype", offsetof(mix_layer_common, policy), &mix_field_policy},
    {MIX_FIELD(mix_layer_common, activity_regularizer), &mix_field_regularizer, .omit_none = MIX_ALWAYS},
    {0}};

static const mix_field_row name_fields[] = {{MIX_FIELD(mix_layer_common, name), &mix_field_text}, {0}};

/* Those of every layer that configs of the class have. */
static const mix_field_row *common_fields_of(const mix_layer_kind *kind) {
  return kind && kind->named_only ? name_fields : common_fields;
}

static mix_fields fields_of(const mix_layer_kind *kind, const mix_semantics *semantics) {
  return (mix_fields){.rows = kind->fields, .call = kind->call, .rules = semantics};
}

/* The options as the layer now has them. The objects are borrowed. */
static mix_layer_common common_of(const mix_layer *layer) {
  return (mix_layer_common){.size = layer->kind ? layer->kind->options_size : sizeof(mix_layer_common),
                            .name = layer->name,
                            .policy = layer->policy,
                            .not_trainable = !layer->trainable,
                            .no_autocast = !layer->autocast,
                            .activity_regularizer = layer->activity_regularizer,
                            .semantics = layer->semantics};
}

/* ---- the object ---- */

static void finalize(void *object) {
  mix_layer *layer = object;
  if (layer->class.finalize && layer->data) layer->class.finalize(layer);
  if (layer->kind) mix_fields_release(&(mix_fields){.rows = layer->kind->fields}, layer->data);
  mix_release(layer->policy);
  mix_release(layer->matched);
  mix_release(layer->weights);
  mix_release(layer->layers);
  mix_release(layer->losses);
  mix_release(layer->metrics);
  mix_release(layer->generators);
  mix_release(layer->states);
  mix_release(layer->activity_regularizer);
  mix_release(layer->lora);
  mix_release(layer->remat);
  json_decref(layer->origin);
  mix_free(layer->config);
  mix_free(layer->serialized);
  mix_free(layer->build_shapes);
  mix_free(layer->data);
}
static const char *name_of(const void *object) { return ((const mix_layer *)object)->name; }
const mix_class mix_layer_object_class = {.name = "layer", .finalize = finalize, .name_of = name_of};

/* Copies the class as the caller compiled it. Its first fields are required. */
static bool copy_class(mix_layer_class *copy, const mix_layer_class *class, const char *call) {
  if (!class) return mix_fail_type("%s: needs a layer class", call);
  if (!mix_options_copy(copy, sizeof *copy, class, call)) return false;
  if (copy->name && copy->name[0] && copy->call) return true;
  return mix_fail_value("%s: a layer class needs a name and a call function", call);
}

/* The policy of the options: an object, a name, or the global policy. Borrowed. */
static mix_policy *choose_policy(const mix_layer_common *common, const mix_semantics *semantics,
                                 const char *call) {
  if (common->policy && common->dtype)
    return mix_fail_value("%s: both dtype '%.60s' and a policy object were given; give one", call,
                          common->dtype);
  if (common->policy)
    return mix_given(common->policy, &mix_policy_class, call, "a policy in .policy") ? common->policy : NULL;
  if (common->dtype && semantics->policy_quantized && mix_quantization_known(common->dtype))
    return mix_fail_value("%s: '%.30s' is a mode of quantization without a policy; expected a name such as "
                          "'%.30s_from_float32'",
                          call, common->dtype, common->dtype);
  return common->dtype ? mix_policy_new(common->dtype, .semantics = semantics) : mix_global_policy();
}

static const char *choose_name(const mix_layer_class *class, const mix_layer_common *common,
                               const mix_semantics *semantics) {
  char text[160];
  if (common->name && common->name[0]) return mix_intern(common->name);
  return mix_unique_name(mix_snake_case(class->name, semantics->private_name_prefix, text, sizeof text),
                         false);
}

mix_layer *mix_layer_make(const mix_layer_class *class, const mix_layer_common *common, void *data,
                          const char *call) {
  mix_layer_class copy;
  if (mix_failed() || !copy_class(&copy, class, call)) return NULL;
  const mix_semantics *semantics = mix_semantics_or_current(common->semantics);
  mix_policy *policy = choose_policy(common, semantics, call);
  if (policy && policy->map && !semantics->policy_maps)
    return mix_fail_value(
        "%s: the policy '%s' has policies by layer, which layers of %s do not take; expected "
        "the semantics keras3",
        call, policy->name, semantics->name);
  if (!policy || (!policy->map && !mix_policy_check_layer(policy, copy.name, common->name, call)))
    return NULL;
  mix_layer *layer = mix_object_new(sizeof *layer, &mix_layer_object_class);
  if (!layer) return NULL;
  layer->class = copy;
  layer->policy = mix_retain(policy);
  layer->semantics = semantics;
  layer->compute = policy->compute;
  layer->variable = policy->variable;
  layer->trainable = !common->not_trainable;
  layer->autocast = !common->no_autocast && !copy.no_autocast;
  layer->activity_regularizer = mix_retain(common->activity_regularizer);
  layer->remat = mix_remat_mode_take();
  layer->data = data ? data : mix_calloc(1, copy.instance_size);
  layer->weights = mix_retain(mix_list_new(0, NULL));
  layer->layers = mix_retain(mix_list_new(0, NULL));
  layer->losses = mix_retain(mix_list_new(0, NULL));
  layer->name = mix_failed() ? NULL : choose_name(&copy, common, semantics);
  if (!common->name || !common->name[0]) layer->maker = mix_layer_building();
  if (layer->name) return layer;
  layer->class.finalize = NULL; /* the instance was never initialized */
  if (data) layer->data = NULL; /* the caller's */
  mix_release(layer);
  return NULL;
}

mix_layer *mix_layer_with(const mix_layer_options *options) {
  MIX_OPTIONS(mix_layer_options, o, options, "layer");
  mix_layer_common common;
  memcpy(&common, &o, sizeof common);
  return mix_scoped(mix_layer_make(o.layer_class, &common, NULL, "layer"));
}

static size_t instance_size(const mix_layer_kind *kind) {
  return kind->class.instance_size ? kind->class.instance_size : kind->options_size;
}

/* The instance, whose options are resolved; NULL with the error recorded. */
static void *instance_of(const mix_layer_kind *kind, const void *options, mix_fields *fields) {
  size_t size = instance_size(kind);
  mix_layer_common common;
  void *data = mix_calloc(1, size);
  if (!data || !mix_options_copy(data, kind->options_size, options, kind->call)) return mix_free(data), NULL;
  memcpy(&common, data, sizeof common);
  *fields = fields_of(kind, mix_semantics_or_current(common.semantics));
  if (mix_fields_resolve(fields, data)) return data;
  mix_free(data);
  return NULL;
}

/* ---- generators ---- */

mix_status mix_layer_add_generator(mix_layer *layer, mix_generator *generator) {
  if (mix_failed()) return mix_error();
  if (!mix_given(layer, &mix_layer_object_class, "layer_add_generator", "a layer") ||
      !mix_given(generator, &mix_generator_class, "layer_add_generator", "a generator"))
    return mix_error();
  if (!layer->generators) layer->generators = mix_retain(mix_list_new(0, NULL));
  return mix_list_append(layer->generators, generator);
}

mix_generator *mix_layer_generator(mix_layer *layer, uint64_t seed) {
  mix_scope *scope = mix_scope_begin();
  mix_generator *generator = mix_generator_new(seed ? seed : mix_next_seed());
  if (generator && mix_layer_add_generator(layer, generator) != MIX_OK) generator = NULL;
  if (scope) mix_scope_end(scope);
  return generator;
}

/* ---- layers of the library ---- */

mix_layer *mix_layer_of_kind(const mix_layer_kind *kind, const void *options) {
  mix_fields fields;
  void *data = mix_failed() ? NULL : instance_of(kind, options, &fields);
  if (!data) return NULL;
  mix_layer_common common;
  bool good = !kind->check || kind->check(data, kind);
  memcpy(&common, data, sizeof common);
  mix_layer *layer = good ? mix_layer_make(&kind->class, &common, data, kind->call) : NULL;
  if (!layer) {
    mix_fields_release(&fields, data);
    mix_free(data);
    return NULL;
  }
  layer->kind = kind;
  common = common_of(layer);
  memcpy(data, &common, sizeof common);
  if (mix_scoped(layer) && kind->ready && !kind->ready(layer)) return NULL;
  if (kind->seed) mix_layer_generator(layer, *(const uint64_t *)((const char *)data + kind->seed));
  return mix_failed() ? NULL : layer;
}

void *mix_layer_data(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->data : NULL;
}
const char *mix_layer_name(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->name : NULL;
}
const char *mix_layer_class_name(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->class.name : NULL;
}
const char *mix_layer_keras_name(const mix_layer *layer) {
  return layer->kind && layer->kind->keras_name ? layer->kind->keras_name : layer->class.name;
}
const mix_semantics *mix_layer_semantics(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->semantics : NULL;
}
mix_dtype mix_layer_compute_dtype(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->compute : MIX_DTYPE_NONE;
}
mix_dtype mix_layer_variable_dtype(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) ? layer->variable : MIX_DTYPE_NONE;
}
bool mix_layer_built(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) && layer->built;
}
bool mix_layer_trainable(const mix_layer *layer) {
  return mix_is(layer, &mix_layer_object_class) && layer->trainable;
}

mix_policy *mix_layer_matched_policy(const mix_layer *layer) {
  mix_policy *policy = mix_layer_policy(layer);
  return policy ? mix_layer_own_policy(layer) : NULL;
}

mix_policy *mix_layer_policy(const mix_layer *layer) {
  if (mix_failed()) return NULL;
  if (!mix_is(layer, &mix_layer_object_class)) return mix_fail_value("layer_policy: the object is no layer");
  return layer->policy;
}

const char *mix_layer_quantization_mode(const mix_layer *layer) {
  return mix_layer_own_policy(layer)->quantization_mode;
}
int64_t mix_layer_amax_history_length(const mix_layer *layer) {
  return mix_layer_own_policy(layer)->amax_history_length;
}

/* A quantization that fails half way leaves the layer's own values and its weights as they were. */
static bool quantize_or_undo(mix_layer *layer, const mix_quantization *quantization) {
  const size_t size = instance_size(layer->kind);
  mix_list *weights = layer->weights;
  void *before = mix_alloc(size);
  if (!before) return false;
  memcpy(before, layer->data, size);
  layer->weights = mix_retain(mix_list_new(mix_list_count(weights), mix_list_items(weights)));
  const bool good = layer->weights && layer->kind->quantize(layer, quantization) == MIX_OK;
  if (!good) memcpy(layer->data, before, size);
  mix_release(good ? weights : layer->weights);
  if (!good) layer->weights = weights;
  mix_free(before);
  return good;
}

mix_status mix_layer_quantize(mix_layer *layer, const mix_quantization *quantization) {
  char name[120];
  snprintf(name, sizeof name, "%.40s_from_%.70s", quantization->mode, mix_layer_own_policy(layer)->name);
  mix_policy *policy = mix_policy_new(name, .semantics = layer->semantics,
                                      .amax_history_length = quantization->amax_history_length);
  if (!policy || !quantize_or_undo(layer, quantization)) return mix_error();
  mix_retain(policy);
  mix_release(layer->policy);
  mix_release(layer->matched);
  layer->policy = policy;
  layer->matched = NULL;
  const mix_layer_common common = common_of(layer);
  memcpy(layer->data, &common, sizeof common);
  mix_capture_epoch_move();
  return mix_error();
}

void mix_layer_set_trainable(mix_layer *layer, bool trainable) {
  if (!mix_is(layer, &mix_layer_object_class)) return;
  layer->trainable = trainable;
  mix_capture_epoch_move();
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    mix_layer_set_trainable(mix_list_items(layer->layers)[i], trainable);
}

static bool holds(const mix_layer *layer, const mix_layer *wanted) {
  bool found = layer == wanted;
  for (int i = 0; !found && i < mix_list_count(layer->layers); i++)
    found = holds(mix_list_items(layer->layers)[i], wanted);
  return found;
}

static bool is_attribute(const mix_layer *layer, const char *attribute) {
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    if (!strcmp(inner->attribute ? inner->attribute : inner->name, attribute)) return true;
  }
  return false;
}

/* The place in files of a layer that another one makes in its `build` without a name: its class, and a number
 * from the second on. Names are counted through the process. */
static const char *free_attribute(const mix_layer *layer, const mix_layer *inner) {
  char class_name[160], text[200];
  mix_snake_case(inner->class.name, inner->semantics->private_name_prefix, class_name, sizeof class_name);
  snprintf(text, sizeof text, "%s", class_name);
  for (int i = 1; is_attribute(layer, text); i++) snprintf(text, sizeof text, "%s_%d", class_name, i);
  return mix_intern(text);
}

mix_layer *mix_layer_add_layer(mix_layer *layer, mix_layer *inner) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_add_layer", "a layer") ||
      !mix_given(inner, &mix_layer_object_class, "layer_add_layer", "an inner layer"))
    return NULL;
  if (holds(inner, layer))
    return mix_fail_value(
        "layer_add_layer: '%s' would hold itself, by '%s'; expected a layer that does not hold it",
        layer->name, inner->name);
  if (!inner->attribute && inner->maker == layer && !layer->kind &&
      !(inner->attribute = free_attribute(layer, inner)))
    return NULL;
  return mix_list_append(layer->layers, inner) ? NULL : inner;
}

mix_list *mix_layer_layers(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_layers", "a layer")) return NULL;
  return mix_list_new(mix_list_count(layer->layers), mix_list_items(layer->layers));
}

/* Configs of attention say nothing of its projections. Where these were quantized, a map with their policies
 * says it: what Keras writes instead it cannot load. */
static mix_policy *policy_with_inner(const mix_layer *layer) {
  mix_policy *map = NULL;
  for (int i = 0; i < mix_list_count(layer->layers) && !mix_failed(); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    char path[256];
    if (!inner->policy->quantization_mode || inner->policy->map) continue;
    if (!map && !(map = mix_policy_map_new(layer->policy->name, .semantics = layer->semantics))) break;
    snprintf(path, sizeof path, "%.120s/%.120s", layer->name, inner->name);
    mix_policy_map_set(map, path, inner->policy);
  }
  return map ? map : layer->policy;
}

/* Keras looks the name of a layer up when it loads a file, which may find another policy than the path by
 * which the layer was built: then the policy is written in place of the map, so that the file computes the
 * same. */
static mix_policy *policy_of_files(const mix_layer *layer) {
  if (!layer->policy->map && layer->kind && layer->kind->call_is_attention) return policy_with_inner(layer);
  if (!layer->map_path || !strcmp(layer->map_path, layer->name)) return layer->policy;
  mix_error_aside before;
  mix_error_set_aside(&before);
  const mix_policy *found = mix_policy_map_lookup(layer->policy, layer->name);
  const bool same = mix_policy_equal(found, layer->matched);
  mix_error_clear();
  mix_error_put_back(&before);
  return same ? layer->policy : layer->matched;
}

/* Beside such a map the config of attention says how its inner layers quantize, if they store integers. */
static bool write_inner_quantization(const mix_layer *layer, json_t *config) {
  for (int i = 0; i < mix_list_count(layer->layers) && !mix_failed(); i++) {
    mix_layer *inner = mix_list_items(layer->layers)[i];
    const char *mode = inner->policy->quantization_mode;
    if (inner->policy->map || !mode || !strncmp(mode, "float8", 6)) continue;
    json_t *of_inner = mix_layer_config_json(inner),
           *own = json_incref(json_object_get(of_inner, "quantization_config"));
    json_decref(of_inner);
    return own && mix_json_set(config, "quantization_config", own);
  }
  return !mix_failed();
}

json_t *mix_layer_config_json(mix_layer *layer) {
  mix_layer_common common = common_of(layer);
  common.policy = policy_of_files(layer);
  const mix_fields fields_of_all = {.rows = common_fields_of(layer->kind), .rules = layer->semantics};
  mix_config config = {mix_fields_write(&fields_of_all, &common, NULL)};
  if (config.object && layer->kind) {
    mix_fields fields = fields_of(layer->kind, layer->semantics);
    config.object = mix_fields_write(&fields, layer->data, config.object);
  }
  if (config.object && layer->kind && layer->kind->call_is_attention)
    write_inner_quantization(layer, config.object);
  bool custom = config.object && layer->class.get_config;
  if (custom && layer->class.get_config(layer, &config) != MIX_OK && !mix_failed())
    mix_fail_value("the layer '%s' gives no config", layer->name);
  return mix_json_whole(config.object);
}

/* The policy is checked before the options that only quantized layers have. */
static bool read_common(const mix_layer_kind *kind, const json_t *config, const mix_semantics *semantics,
                        void *options) {
  const mix_fields fields = {.rows = common_fields_of(kind), .call = kind->call, .rules = semantics};
  const mix_layer_common *common = options;
  if (!mix_fields_read(&fields, config, options)) return false;
  return !common->policy || common->policy->map ||
         mix_policy_check_layer(common->policy, kind->class.name, common->name, kind->call);
}

const char *mix_layer_lost_option(const mix_layer *layer, const mix_semantics *other) {
  if (!layer->kind || !layer->kind->fields) return NULL;
  mix_fields fields = fields_of(layer->kind, layer->semantics);
  fields.common = common_fields_of(layer->kind);
  return mix_fields_lost(&fields, other, layer->data, layer->kind->options_size);
}

mix_layer *mix_layer_read(const mix_layer_kind *kind, const json_t *config, const mix_semantics *semantics) {
  const mix_fields fields = fields_of(kind, semantics);
  char *options = mix_calloc(1, kind->options_size);
  mix_layer *layer = NULL;
  if (!options) return NULL;
  memcpy(options, &(mix_layer_common){.size = kind->options_size, .semantics = semantics},
         sizeof(mix_layer_common));
  if (read_common(kind, config, semantics, options) && mix_fields_read(&fields, config, options))
    layer = kind->from_config ? kind->from_config(kind, config, options) : mix_layer_of_kind(kind, options);
  mix_free(options);
  return layer;
}

mix_layer *mix_layer_read_custom(const mix_layer_class *class, const json_t *json,
                                 const mix_semantics *semantics) {
  mix_layer_common common = {.size = sizeof common, .semantics = semantics};
  mix_fields fields = {.rows = common_fields, .call = class->name, .rules = semantics};
  if (mix_failed() || !mix_fields_read(&fields, json, &common)) return NULL;
  mix_layer *layer = mix_scoped(mix_layer_make(class, &common, NULL, class->name));
  if (!layer || !layer->class.from_config) return layer;
  mix_config config = {(json_t *)json};
  mix_status status = layer->class.from_config(layer, &config);
  if (!status && !mix_failed()) return layer;
  return mix_fail(status ? status : MIX_INTERNAL_ERROR, "%s: from_config failed", layer->name);
}

json_t *mix_layer_object_json(const mix_layer *layer, json_t *config) {
  bool own = layer->kind || layer->is_model || layer->is_input;
  const char *module = layer->semantics->objects_have_module ? "keras.layers" : NULL;
  const char *other = module && layer->kind ? layer->kind->module : NULL;
  char inside[120];
  if (other && *other == '.') {
    snprintf(inside, sizeof inside, "%s%s", layer->semantics->source_package, other);
    other = inside;
  }
  json_t *object = mix_json_object(other ? other : module, layer->class.name, config);
  const char *package = layer->kind && layer->kind->registered ? layer->semantics->optimizer_package : NULL;
  if (other && object)
    mix_json_set(object, "registered_name",
                 json_sprintf("%s%s%s", package ? package : "", package ? ">" : "", layer->class.name));
  if (own || !module || !object) return object;
  mix_json_set(object, "module", json_null());
  mix_json_set(object, "registered_name", json_string(mix_registered_name(&layer->class)));
  return object;
}
