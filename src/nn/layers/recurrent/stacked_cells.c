/* StackedRNNCells: cells, each of which reads the output of the one before. */
#include "base/error.h"
#include "nn/layers/recurrent/recurrent.h"

static mix_list *cells_of(const mix_layer *layer) { return ((const mix_cell *)layer->data)->stacked.cells; }

/* The shape of a cell's output, with the batch. */
static mix_shape next_inputs(mix_shape inputs, mix_shape output) {
  mix_shape next = {.rank = output.rank + 1, .dims = {inputs.dims[0]}};
  for (int i = 0; i < output.rank; i++) next.dims[i + 1] = output.dims[i];
  return next;
}

static mix_status build(mix_layer *layer, int count, const mix_shape *shapes) {
  mix_shape inputs = shapes[0];
  for (int i = 0; i < mix_list_count(cells_of(layer)); i++) {
    mix_layer *cell = mix_list_get(cells_of(layer), i);
    mix_cell_states states;
    if (mix_cell_build(cell, inputs) || !mix_cell_states_of(cell, inputs, &states)) break;
    inputs = next_inputs(inputs, states.output);
  }
  return mix_error();
}

static mix_status states(mix_layer *layer, mix_shape inputs, mix_cell_states *all) {
  for (int i = 0; i < mix_list_count(cells_of(layer)); i++) {
    mix_cell_states own;
    if (!mix_cell_states_of(mix_list_get(cells_of(layer), i), inputs, &own)) break;
    if (all->count + own.count > MIX_CELL_STATES)
      return mix_fail_status(MIX_VALUE_ERROR, "%s: the cells have more than %d states", layer->name,
                             MIX_CELL_STATES);
    for (int s = 0; s < own.count; s++) all->states[all->count++] = own.states[s];
    all->output = own.output;
    inputs = next_inputs(inputs, own.output);
  }
  return mix_error();
}

static mix_tensor *project(const mix_cell_run *run, mix_tensor *inputs) {
  return mix_cell_project(&run->inner[0], inputs);
}

static mix_list *step(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states) {
  mix_list *results = mix_list_new(0, NULL);
  mix_tensor *output = NULL;
  for (int i = 0, first = 0; i < run->inner_count && !mix_failed(); i++) {
    mix_list *own = mix_cell_step(&run->inner[i], i ? mix_cell_project(&run->inner[i], output) : projected,
                                  states + first);
    if (!own) return NULL;
    output = mix_list_get(own, 0);
    if (!i) mix_list_append(results, output); /* the place of the last output */
    for (int s = 1; s < mix_list_count(own); s++) mix_list_append(results, mix_list_get(own, s));
    first += mix_list_count(own) - 1;
  }
  mix_list *all = mix_list_of(output);
  for (int i = 1; i < mix_list_count(results); i++) mix_list_append(all, mix_list_get(results, i));
  return mix_failed() ? NULL : all;
}

/* Each cell draws its own masks. */
static bool begin(mix_cell_run *run, mix_shape inputs, mix_dtype dtype) {
  mix_list *cells = cells_of(run->layer);
  run->inner_count = mix_list_count(cells);
  run->inner = mix_scoped_memory(sizeof *run->inner * (size_t)run->inner_count);
  for (int i = 0; run->inner && i < run->inner_count; i++) {
    mix_layer *cell = mix_list_get(cells, i);
    mix_cell_states states;
    if (!mix_cell_begin(&run->inner[i], cell, inputs, dtype, run->training) ||
        !mix_cell_states_of(cell, inputs, &states))
      return false;
    inputs = next_inputs(inputs, states.output);
  }
  return run->inner;
}

static const mix_cell_kind cell_kind = {.begin = begin, .project = project, .step = step};

static bool ready(mix_layer *layer) {
  ((mix_cell *)layer->data)->kind = &cell_kind;
  for (int i = 0; i < mix_list_count(cells_of(layer)); i++) {
    mix_layer *cell = mix_list_get(cells_of(layer), i);
    mix_cell_states states;
    if (!cell->class.cell_states && !mix_cell_states_of(cell, MIX_SHAPE(1), &states)) return false;
    cell->attribute = "cells/";
    if (!mix_layer_add_layer(layer, cell)) return false;
  }
  if (mix_list_count(cells_of(layer))) return true;
  return mix_fail_value("%s: got no cells; expected one or more", layer->name);
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_stacked_rnn_cells_options, cells), &mix_field_layers, .required = true}, {0}};
MIX_LAYER_KIND(stacked_rnn_cells, mix_stacked_rnn_cells_options, .fields = fields, .ready = ready,
               .call_training = MIX_FALSE,
               MIX_LAYER_CLASS(.name = "StackedRNNCells", .instance_size = sizeof(mix_cell), .build = build,
                               .call = mix_cell_call, .cell_states = states))
