/* Saves whole models: .keras archives and legacy HDF5 files. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "formats/zip_writer.h"
#include "saving/model_json.h"
#include "saving/preset.h"
#include "saving/write_weights.h"
#include <string.h>

#define CALL "model_save"

/* ---- .keras ---- */

/* The weights begin where their alignment in the HDF5 file holds in the archive too. */
static bool write_members(const char *path, const char *metadata, const char *config,
                          mix_piece_source weights) {
  const mix_zip_member members[] = {
      {.name = "metadata.json", .pieces = {{metadata, strlen(metadata)}}},
      {.name = "config.json", .pieces = {{config, strlen(config)}}},
      {.name = "model.weights.h5", .source = weights, .alignment = MIX_HDF5_ALIGNMENT}};
  char *part = mix_file_part(path, CALL);
  const bool done =
      part && mix_zip_write(CALL, path, part, 3, members, NULL) && mix_file_commit(part, path, CALL);
  mix_free(part);
  return done;
}

static bool save_archive(mix_model *model, const char *path, const json_t *structure, bool compiled) {
  mix_piece_source weights;
  mix_hdf5_writer *file = mix_weights_file(model, CALL, !compiled, true);
  json_t *about = mix_metadata_json(model->semantics);
  char *metadata = about ? mix_json_python_text(about) : NULL, *config = mix_json_python_text(structure);
  const bool done = metadata && config && mix_hdf5_writer_source(file, &weights) &&
                    write_members(path, metadata, config, weights);
  mix_free(metadata);
  mix_free(config);
  json_decref(about);
  return done;
}

/* ---- .h5 ---- */

/* Takes the JSON. */
static bool write_json(mix_hdf5_writer *file, const char *name, json_t *json) {
  json = mix_json_whole(json);
  char *text = json ? mix_json_python_text(json) : NULL;
  const bool done = text && mix_hdf5_write_text(file, "", name, text);
  mix_free(text);
  json_decref(json);
  return done;
}

static bool save_legacy(mix_model *model, const char *path, const json_t *structure, bool compiled) {
  json_t *config = json_object_get(structure, "compile_config");
  mix_hdf5_writer *file = mix_hdf5_writer_new(CALL);
  return mix_hdf5_write_text(file, "", "keras_version", model->semantics->keras_version) &&
         mix_hdf5_write_text(file, "", "backend", "tensorflow") &&
         write_json(file, "model_config", mix_legacy_model_json(structure)) &&
         (!compiled ||
          write_json(file, "training_config", mix_legacy_training_json(config, model->semantics))) &&
         mix_write_legacy_weights(file, model, "model_weights") &&
         (!compiled || mix_write_legacy_optimizer(file, model)) && mix_hdf5_save(file, path, CALL);
}

/* ---- the call ---- */

static bool can_save(const mix_model *model, const mix_save_options *options) {
  const mix_file_kind kind = mix_file_kind_of(options->path);
  if (kind == MIX_FILE_WEIGHTS || kind == MIX_FILE_SHARDS || kind == MIX_FILE_ARRAYS ||
      kind == MIX_FILE_SAFETENSORS)
    mix_fail_value(CALL ": '%.200s' names a file of weights; expected a name that ends in .keras or "
                        ".h5, or mix_model_save_weights",
                   options->path);
  else if (kind != MIX_FILE_ARCHIVE && kind != MIX_FILE_LEGACY && kind != MIX_FILE_PRESET)
    mix_fail_value(CALL ": '%.200s' given; expected a name that ends in .keras or .h5, or in / for a folder "
                        "of KerasHub",
                   options->path);
  else if (options->no_overwrite &&
           (kind == MIX_FILE_PRESET ? mix_is_preset_folder : mix_file_exists)(options->path))
    mix_fail_io(CALL ": %s exists already, and .no_overwrite is set", options->path);
  else
    mix_model_has_structure(model, CALL);
  return !mix_failed();
}

/* Legacy files hold a and b, which the layers of a config without lora_rank would not have. */
static bool keeps_lora(mix_model *model, const mix_semantics *rules, mix_file_kind kind) {
  if (kind != MIX_FILE_LEGACY || rules->config_newer_options) return true;
  mix_list *layers = mix_model_lora_layers(model);
  if (!layers || !mix_list_count(layers)) return !mix_failed();
  return mix_fail_unsupported(CALL
                              ": layer '%s' has LoRA, which no .h5 of %s can say; save a .keras, which is "
                              "merged, or merge before",
                              ((mix_layer *)mix_list_items(layers)[0])->name, rules->name);
}

/* Layers of KerasHub's models are read as parts of these alone, and these by a name that legacy files lack.
 */
static bool is_readable(const mix_layer *layer, mix_file_kind kind) {
  const char *name = json_string_value(json_object_get(layer->origin, "registered_name"));
  if (kind == MIX_FILE_LEGACY && name && !strncmp(name, "keras_hub>", strlen("keras_hub>")))
    return mix_fail_unsupported(CALL ": '%s' is a model of KerasHub, which no .h5 can say; save a .keras",
                                layer->name);
  if (layer->origin) return true;
  if (layer->kind && !strncmp(layer->kind->call, "hub_", strlen("hub_")))
    return mix_fail_unsupported(CALL
                                ": layer '%s' is a part of a model of KerasHub, without which no file can "
                                "say it; call the model itself as a layer, or save the weights",
                                layer->name);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (!is_readable(mix_list_items(layer->layers)[i], kind)) return false;
  return true;
}

static void save(mix_model *model, const mix_save_options *options) {
  const bool compiled = model->state && !options->no_optimizer;
  const mix_semantics *semantics = mix_file_semantics(model, options->semantics);
  if (!mix_failed() && mix_file_kind_of(options->path) == MIX_FILE_PRESET) {
    mix_preset_write(model, options->path, CALL);
    return;
  }
  const mix_file_kind kind = mix_file_kind_of(options->path);
  if (mix_failed() || !keeps_lora(model, semantics, kind) || !is_readable(model->layer, kind)) return;
  if (semantics != model->semantics)
    model = mix_model_in_generation(model, semantics, options->path, compiled, CALL);
  json_t *structure = model ? mix_model_saved_json(model, compiled) : NULL;
  if (structure && mix_file_kind_of(options->path) == MIX_FILE_ARCHIVE)
    save_archive(model, options->path, structure, compiled);
  else if (structure)
    save_legacy(model, options->path, structure, compiled);
  json_decref(structure);
}

mix_status mix_model_save_with(mix_model *model, const mix_save_options *given) {
  MIX_OWN_FLOAT_MODES;
  mix_save_options options;
  if (!mix_model_given(model, CALL)) return mix_error();
  if (!given || !mix_options_copy(&options, sizeof options, given, CALL))
    return mix_failed() ? mix_error() : mix_fail_status(MIX_TYPE_ERROR, CALL ": no options");
  if (!options.path) return mix_fail_status(MIX_TYPE_ERROR, CALL ": path is NULL");
  if (!can_save(model, &options)) return mix_error();
  MIX_MODEL_USE(model, MIX_READS_MODEL, CALL)
  MIX_SCOPE { save(model, &options); }
  return mix_error();
}
