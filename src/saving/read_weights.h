/* Weights and optimizer state from files of Keras into a model. */
#pragma once

#include "model/model.h"
#include "saving/keras_file.h"
#include <mixtape/saving.h>

typedef struct mix_weights_reader {
  mix_keras_file *file;
  mix_model *model;
  const char *call; /* for messages */
  /* Legacy files only: layers get the weights of their name, and those of other names stay. */
  bool by_name;
  bool skip_mismatch; /* a layer whose weights do not fit is left as it is, with a warning */
  bool assign;        /* the second pass, after everything was checked */
  bool no_optimizer;  /* its state stays as it is */
  mix_layer *skipped; /* a layer of the model that the file does not have; NULL: it has all */
  /* Layers that another policy than the file's made float8 begin with scales of 1. */
  bool begins_scales;
} mix_weights_reader;

/* Weights of the model, and the optimizer's state if it is compiled. Everything is checked before the first
 * variable changes. ValueError, which names layer, counts and shapes, if something does not fit; of the
 * optimizer a wrong number of variables is a warning, and it stays as it is. */
bool mix_read_weights(mix_weights_reader *reader);
/* Checks the weights alone, of a model whose optimizer is not built. */
bool mix_check_weights(mix_weights_reader *reader);

/* Quantizes layers in layers whose config says nothing of it, but whose group has the weights of a float8
 * layer: Keras writes such files of attention after Model.quantize. False with the error recorded. */
bool mix_quantize_as_file(mix_weights_reader *reader);

/* load_model.c: the model of a file that was opened with its structure; scoped. NULL with the error
 * recorded. */
mix_model *mix_model_of_file(mix_keras_file *file, const mix_load_options *options);

/* ---- what the files share (read_variable.c) ---- */

/* Checks the shape of a data set, and assigns it in the second pass, cast to the variable's dtype. */
bool mix_read_variable(mix_weights_reader *reader, const char *path, mix_variable *variable);
/* Have both variables one layer, by their names? */
bool mix_have_one_layer(const mix_variable *a, const mix_variable *b);
/* True if an error is recorded that is to be skipped: it is logged then, and forgotten. */
bool mix_skip_mismatch(const mix_weights_reader *reader);
/* "kernel (4, 3), bias (3)": the variables without their layer's path. */
const char *mix_variables_text(mix_list *variables, char *text, size_t size);
/* Of files by path (read_weights.c) and of legacy files (read_legacy_weights.c); read_optimizer.c. */
bool mix_read_legacy_weights(mix_weights_reader *reader);
bool mix_read_optimizer(mix_weights_reader *reader);
/* The texts of an attribute, which may stand in pieces NAME0, NAME1, ...; free each and the array. */
typedef struct mix_texts {
  char **items;
  int count, capacity;
} mix_texts;
bool mix_read_texts(mix_keras_file *file, const char *path, const char *name, mix_texts *texts);
void mix_texts_free(mix_texts *texts);
/* A layer's variables in the order of legacy files: a new list, trainable ones first. Those of a float8 layer
 * are in the order of one made from its config: scales and histories before the kernel. */
mix_list *mix_legacy_variables(mix_layer *layer);
/* Variables of the model itself, which legacy files hold in a group of that name: a new list. */
mix_list *mix_own_variables(const mix_layer *model);
#define MIX_OWN_WEIGHTS "top_level_model_weights"
/* How many links the group has; 0: there is none. -1 with the error recorded. */
int mix_count_links(mix_keras_file *file, const char *path);
/* The parts of a path with a slash between, in the scope. */
const char *mix_join_path(const char *folder, const char *name);
