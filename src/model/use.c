/* Which calls run on a model now, and which may run beside them. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

/* A call of another thread that is of this kind, or of any kind (MIX_ANY_USE). */
static const mix_model_use *other_use(const mix_model *model, mix_model_use_kind kind) {
  const mix_model_use *use = model->uses;
  while (use && (pthread_equal(use->thread, pthread_self()) || (kind != MIX_ANY_USE && use->kind != kind)))
    use = use->next;
  return use;
}

/* The call that forbids this one, with the lock held; NULL: it may run. A call that may build the model
 * changes it. */
static const mix_model_use *obstacle(mix_model_use *use) {
  const mix_model_use *writer = other_use(use->model, MIX_CHANGES_MODEL);
  if (writer) return writer;
  if (!use->model->layer->built) use->kind = MIX_CHANGES_MODEL;
  return use->kind == MIX_CHANGES_MODEL ? other_use(use->model, MIX_ANY_USE) : NULL;
}

bool mix_model_use_begin(mix_model_use *use, mix_model *model, mix_model_use_kind kind, const char *call) {
  *use = (mix_model_use){.model = model, .kind = kind, .call = call, .thread = pthread_self()};
  pthread_mutex_lock(&lock);
  const mix_model_use *other;
  while (!(other = obstacle(use)) && use->kind == MIX_CHANGES_METRICS && other_use(model, use->kind))
    pthread_cond_wait(&ended, &lock);
  const char *running = other ? other->call : NULL;
  if (!other) {
    use->next = model->uses;
    model->uses = use;
  }
  pthread_mutex_unlock(&lock);
  if (running)
    mix_fail(MIX_BUSY, "%s: '%s' is in use by %s on another thread; call %s when that has returned", call,
             mix_layer_name(model->layer), running, call);
  return !running;
}

void mix_model_use_end(mix_model_use *use) {
  pthread_mutex_lock(&lock);
  mix_model_use **at = &use->model->uses;
  while (*at != use) at = &(*at)->next;
  *at = use->next;
  use->ended = true;
  pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&lock);
}

/* ---- tracing ---- */

static pthread_mutex_t tracing;
static void make_tracing(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&tracing, &attributes);
  pthread_mutexattr_destroy(&attributes);
}
void mix_model_trace_lock(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_tracing);
  pthread_mutex_lock(&tracing);
}
void mix_model_trace_unlock(void) { pthread_mutex_unlock(&tracing); }

/* ---- texts ---- */

const char *mix_model_keep_text(char **kept, char *text) {
  pthread_mutex_lock(&lock);
  if (*kept && !strcmp(*kept, text)) {
    mix_free(text);
  } else {
    mix_free(*kept);
    *kept = text;
  }
  text = *kept;
  pthread_mutex_unlock(&lock);
  return text;
}

/* ---- predictors ---- */

mix_predictor *mix_predictor_take(mix_model *model) {
  pthread_mutex_lock(&lock);
  mix_predictor *predictor = model->predictors;
  if (predictor) model->predictors = predictor->next;
  pthread_mutex_unlock(&lock);
  if (!predictor && (predictor = mix_calloc(1, sizeof *predictor))) predictor->model = model;
  return predictor;
}

void mix_predictor_give_back(mix_predictor *predictor) {
  if (!predictor) return;
  mix_model *model = predictor->model;
  pthread_mutex_lock(&lock);
  predictor->next = model->predictors;
  model->predictors = predictor;
  pthread_mutex_unlock(&lock);
}

void mix_predictors_drop(mix_model *model) {
  model->predictor_epoch++;
  while (model->predictors) {
    mix_predictor *predictor = model->predictors;
    model->predictors = predictor->next;
    mix_release(predictor->function);
    mix_free(predictor);
  }
}
