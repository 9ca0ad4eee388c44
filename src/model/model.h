/* Inside a model: a layer that replays recorded calls, and the state that compile creates. */
#pragma once

#include "backend/backend.h"
#include "base/key_map.h"
#include "base/structure.h"
#include "nn/layer/layer.h"
#include "nn/metrics/metric.h"
#include <mixtape/model.h>
#include <pthread.h>

/* Keras's default batch size. */
enum { MIX_DEFAULT_BATCH = 32 };

/* A metric as resolved by compile: of the losses or of one output. */
typedef struct mix_model_metric {
  mix_metric *metric; /* retained */
  const char *name;   /* interned; the name in logs */
  int output;
  bool weighted; /* sample and class weights apply */
  bool added;    /* the mean of what layers add under its name (mix_layer_add_metric): of no output */
} mix_model_metric;

typedef struct mix_compiled_state {
  mix_optimizer *optimizer;       /* retained */
  mix_optimizer *given_optimizer; /* retained: before compile wrapped it */
  mix_compile_options given;      /* texts interned, lists retained; without optimizers. For configs */
  json_t *config; /* what a config said of the loss and what follows it; NULL: `given` says it */
  mix_loss *losses[MIX_MODEL_MAX]; /* retained; NULL: the output has none */
  double loss_weights[MIX_MODEL_MAX];
  int output_count;
  mix_metric *loss_tracker;                 /* retained */
  mix_model_metric trackers[MIX_MODEL_MAX]; /* of each output's loss, if there are several */
  int tracker_count;
  mix_model_metric *metrics;
  int metric_count, metric_capacity;
  mix_tensor *class_weights; /* of the current fit: retained (classes) float32; NULL: none */
  bool class_weights_all;    /* every label must be one of them */
  /* number of sample weights after the labels in the step's arguments: none, one, or one for each output */
  int weight_arguments;
  unsigned missing_labels;          /* bits of the outputs whose labels are not given: no loss, no metrics */
  const mix_structure *input_names; /* of a subclassed model's inputs, given as a dict; NULL: a list */
  mix_function *train, *test;       /* retained, made on first use */
  const struct mix_step_observer *observer; /* of the running fit; NULL: none (train/captured_steps.h) */
  mix_function *watched;                    /* the step as observed: retained */
  /* Of train/finished_logs.c, retained: what takes the metrics' results, those that are not there yet, and
   * the latest that were. */
  mix_function *recorder;
  mix_list *record;
  struct mix_logs *finished;
  mix_variable *agreement; /* retained: what ranks tell each other within a step; NULL: nothing yet */
} mix_compiled_state;

/* What a call does with a model, as model.h says it of each function: calls that only read run side by side,
 * of those that update metrics one at a time, and one that changes the model alone. */
typedef enum mix_model_use_kind {
  MIX_ANY_USE,
  MIX_READS_MODEL,
  MIX_CHANGES_METRICS,
  MIX_CHANGES_MODEL
} mix_model_use_kind;
/* A call in progress. */
typedef struct mix_model_use {
  mix_model *model;
  mix_model_use_kind kind;
  const char *call;
  pthread_t thread;
  bool ended;
  struct mix_model_use *next;
} mix_model_use;

/* The captured inference of one thread at a time. */
typedef struct mix_predictor {
  mix_model *model;
  mix_function *function;           /* retained; NULL: to be captured */
  const mix_structure *input_names; /* of a subclassed model's inputs, as in mix_compiled_state */
  uint64_t epoch;                   /* the model's, when the function was made */
  struct mix_predictor *next;
} mix_predictor;

typedef enum mix_model_kind { MIX_FUNCTIONAL, MIX_SEQUENTIAL, MIX_SUBCLASSED } mix_model_kind;

struct mix_model {
  mix_object object;
  mix_layer *layer; /* retained: calls its layers */
  const mix_semantics *semantics;
  mix_model_kind kind;
  int input_count, output_count; /* of a subclassed model */
  mix_shape input_shape;         /* sequential: shape given to mix_model_build; rank 0: none */
  mix_compiled_state *state;     /* NULL before compile */
  mix_compiled_state *compiling; /* the state that compile is building; otherwise NULL */
  char *summary;
  size_t summary_table; /* bytes of the summary that Keras prints too */
  char *json;           /* the result of mix_model_to_json */
  mix_history *history; /* retained: of the latest fit */
  _Atomic bool stop_training;
  mix_model_use *uses;       /* the calls in progress (use.c) */
  mix_predictor *predictors; /* those that no call uses; owned */
  uint64_t predictor_epoch;  /* moves when predictors must capture again */
  bool validates;            /* the running fit has validation data */
  bool resumes;              /* the running fit continues from a checkpoint */
  /* The next evaluate is the running fit's own, whose arrays may stay on the device; NULL: it is not. */
  struct mix_kept_arrays *tests_validation_data;
};
extern const mix_class mix_model_object_class;

/* summary.c: how the largest product of the model's layers is computed and summed, for a number of examples
 * and a dtype. */
mix_kernel_info mix_model_kernel_info(mix_model *model, mix_dtype dtype, int64_t examples);
/* The layer with most weights, also in models in it; NULL: none has any. Most products have its dtype. */
mix_layer *mix_model_main_layer(mix_model *model);

/* lora.c: the layers that have LoRA, in a new list. */
mix_list *mix_model_lora_layers(mix_model *model);

/* functional.c: the recorded calls between inputs and outputs. */
typedef struct mix_functional {
  mix_tensor **inputs, **outputs; /* retained */
  int input_count, output_count;
  mix_tensor **extras; /* retained: what calls compute too, though no output needs it */
  int extra_count;
  mix_layer_call **calls; /* retained, in the order they were made */
  int call_count;
  mix_key_map places; /* of calls in `calls`, and of layers that of their first call */
  struct mix_call_place {
    int next;   /* the next call of the same layer; -1: none */
    int number; /* which of its layer's calls it is, from 0 */
  } * of_layer; /* (call_count) */
  /* The structure in which the user gave them: a mix_operand_form, or lists and objects of them. */
  json_t *input_form, *output_form;
  const char *output_names[MIX_MODEL_MAX]; /* in logs and dicts of data */
} mix_functional;
/* What a sequential model keeps. */
typedef struct mix_sequential_data {
  mix_shape shape; /* of the first call's input; rank 0: there was none */
  mix_dtype dtype;
  mix_key_map names; /* of its first `named` layers: interned */
  int named;
} mix_sequential_data;
extern const mix_layer_class mix_class_functional, mix_class_sequential;
static inline bool mix_layer_is_functional(const mix_layer *layer) {
  return layer->class.call == mix_class_functional.call;
}
static inline bool mix_layer_is_sequential(const mix_layer *layer) {
  return layer->class.call == mix_class_sequential.call;
}
/* Is it a model with a structure of layers, which a subclassed one does not have? */
static inline bool mix_layer_is_structured(const mix_layer *layer) {
  return mix_layer_is_functional(layer) || mix_layer_is_sequential(layer);
}
/* The first layer of a sequential model; NULL: it has none. */
mix_layer *mix_sequential_first(const mix_layer *model);
/* The input layer that it may begin with; NULL: none. */
mix_layer *mix_sequential_input_layer(const mix_layer *model);
/* The shape of its input, with an open batch size if it is that of data; rank 0: unknown. */
mix_shape mix_sequential_shape(const mix_layer *model);
/* The place of a call among `calls`; -1: it is none of them. */
static inline int mix_functional_call_place(const mix_functional *graph, const mix_layer_call *call) {
  return mix_key_map_get(&graph->places, mix_address_key(call));
}
/* The places of a layer's calls: the first, and the one behind call `c`; -1: none. */
static inline int mix_functional_first_call(const mix_functional *graph, const mix_layer *layer) {
  return mix_key_map_get(&graph->places, mix_address_key(layer));
}
static inline int mix_functional_next_call(const mix_functional *graph, int c) {
  return graph->of_layer[c].next;
}
/* Which of its layer's calls in the graph it is, from 0. */
int mix_functional_call_number(const mix_functional *graph, const mix_layer_call *call);
/* Data for an input as Keras takes them: another dtype is cast, a last axis of one is added or removed. */
mix_tensor *mix_model_conform(mix_tensor *given, mix_shape wanted, mix_dtype dtype);
/* mix_model_with, of calls that no output needs, too: `extras` are results of them. */
mix_model *mix_model_with_extras(const mix_model_options *options, mix_list *extras);
/* layer_order.c: makes the layers of the calls inner layers of the model, in Keras's order. */
bool mix_functional_add_layers(mix_layer *model, const mix_functional *graph);
/* The number of outputs and inputs, and the name of an output: that of its layer, which tf_keras
 * makes unique. */
int mix_model_output_count(const mix_model *model);
int mix_model_input_count(const mix_model *model);
const char *mix_model_output_name(const mix_model *model, int output);
/* NULL: the inputs of the model have no names. */
const char *mix_model_input_name(const mix_model *model, int input);
/* Shape of an input as declared; rank -1: unknown. */
mix_shape mix_model_input_shape(const mix_model *model, int input);
mix_dtype mix_model_input_dtype(const mix_model *model, int input); /* floatx where none is declared */
/* Shape of an output, with unknown batch size; rank -1: unknown. */
mix_shape mix_model_output_shape(const mix_model *model, int output);

/* match_data.c: a tensor or a list of tensors (no structure), or nested lists and dicts, whose leaves begin
 * at `first` in a list of leaves. */
typedef struct mix_component {
  const mix_structure *structure;
  int first, leaves;
} mix_component;
/* The places of the model's inputs among the leaves: dicts by name, lists in order. */
bool mix_match_inputs(const mix_model *model, const mix_component *x, int *places, const char *call);
/* The same for a dict of labels or weights (`what`); -1 for an output that it may lack. */
bool mix_match_outputs(const mix_model *model, const mix_component *given, const char *what, int *places,
                       const char *call);
/* The inputs of a dict, in the model's order. */
mix_list *mix_model_inputs_by_name(const mix_model *model, mix_list *dict, const char *call);

/* sequential.c: builds the model by a call on a symbolic tensor. */
mix_status mix_sequential_build_on(mix_model *model, mix_tensor *input);
/* compile.c: a copy of the options in which texts are interned and objects retained, and its end. */
void mix_compile_options_keep(mix_compile_options *copy, const mix_compile_options *options);
void mix_compile_options_release(mix_compile_options *copy);
/* A preprocess for the model that is its context: divides uint8 inputs by 255 in float32, as the Keras guide
 * does, and flattens them if the model takes vectors. */
mix_list *mix_preprocess_images(void *model, mix_list *inputs);
/* model.c: a model object around a layer, which it retains; scoped. */
mix_model *mix_model_wrap(mix_layer *layer, mix_model_kind kind);
/* Fails if the object is not a model. */
bool mix_model_given(const mix_model *model, const char *call);
/* Fails if there are no weights, as before a model that is not functional is built. */
bool mix_model_weights_ready(const mix_model *model, const char *call);
/* use.c: between begin and end the call runs on the model. False with the error recorded: MIX_BUSY where a
 * call of another thread forbids it; a thread's own calls may nest. Where both update metrics, it waits. */
bool mix_model_use_begin(mix_model_use *use, mix_model *model, mix_model_use_kind kind, const char *call);
void mix_model_use_end(mix_model_use *use);
/* Runs a block as such a call, or not at all. The block must not jump out. */
#define MIX_MODEL_USE(model, kind, call)                                                                     \
  for (mix_model_use model_use = {0}; !model_use.ended && mix_model_given(model, call) &&                    \
                                      mix_model_use_begin(&model_use, model, kind, call);                    \
       mix_model_use_end(&model_use))
/* Layers are called by one thread at a time, because a call changes them. Recursive. */
void mix_model_trace_lock(void);
void mix_model_trace_unlock(void);
/* Replaces a text of the model by another, which it takes; the same text stays where it is. */
const char *mix_model_keep_text(char **kept, char *text);
/* A predictor that no other thread has. NULL with the error recorded. */
mix_predictor *mix_predictor_take(mix_model *model);
void mix_predictor_give_back(mix_predictor *predictor);
/* Ends the predictors; one that a caller of this thread has captures again. */
void mix_predictors_drop(mix_model *model);
/* A list of tensors from a tensor or a list; scoped. NULL with the error recorded: "fit: x is neither
 * ...". */
mix_list *mix_tensors_given(void *given, const char *call, const char *what);

/* compile.c */
void mix_compiled_state_free(mix_compiled_state *state);
/* mix_model_compile that wraps no optimizer in a loss scale, in any generation. */
mix_status mix_model_compile_unwrapped(mix_model *model, const mix_compile_options *options);
/* Does anything read labels: a loss or a metric of compile? Layers may add losses of their own. */
bool mix_model_wants_labels(const mix_model *model);
/* Fails if the model is not compiled. */
mix_compiled_state *mix_model_compiled(mix_model *model, const char *call);

/* compile_metrics.c */
bool mix_model_compile_metrics(mix_model *model, mix_compiled_state *state,
                               const mix_compile_options *options);
/* The mean of that name, which layers update, behind all others; made if there is none. NULL with the error
 * recorded: a ValueError where a metric of compile has the name. */
mix_metric *mix_model_added_metric(mix_model *model, const char *name);
