/* The kernels of portable C have the same bits on every architecture, with 1, 2 and 3 threads: digests of the
 * weights after 20 steps of four kinds of models, recorded on x86-64. The logarithms and exponentials of the
 * last packet are the C library's (glibc's here). */
/* Holds docs/NUMERICS.md: Following TensorFlow to the bit. */
#include "backend/host/executor.h"
#include "base/processor.h"
#include "support/skip.h"
#include "train/digest_models.h"

enum { MODELS = 4, POLICIES = 4, MAX_THREADS = 3, NAME = 64 };

static const char *const policies[POLICIES] = {"float32", "mixed_float16", "mixed_bfloat16", "float64"};
typedef struct recorded {
  const char *model;
  trial (*make)(void);
  uint64_t digests[POLICIES];
} recorded;
static const recorded models[MODELS] = {
    {"guide", guide_trial, {0xef0921a0fd875679, 0x0389bef2d14714a8, 0xc391718187a0ea9a, 0x2adfb09e96fe9821}},
    {"resnet",
     resnet_trial,
     {0xcdfbcdc345ce5f2b, 0x35dda62bdf275f8a, 0xa8a6258a06d50e02, 0x3ef04bbe3f9fb8f3}},
    {"lstm", lstm_trial, {0x35be901ca5c7ee92, 0xb743c66e9d3dbce1, 0xec59682ad21516fb, 0xdb47054da2dc1969}},
    {"transformer",
     transformer_trial,
     {0x34068a41cc772f71, 0x4f773d562ad4bc14, 0xc3ff41bbc4cf964f, 0x5681604b414dcd48}}};

typedef struct digest_case {
  const recorded *model;
  int policy;
  char name[NAME];
} digest_case;

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t digest(const unsigned char *bytes, size_t size) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

static uint64_t digest_of_weights(const digest_case *c) {
  mix_set_global_policy(policies[c->policy]);
  mix_clear_names();
  mix_set_seed(5);
  uint64_t got = 0;
  MIX_SCOPE {
    const trial t = c->model->make();
    mix_history *history = mix_model_fit(t.model, t.inputs, t.labels, .batch_size = t.batch, .epochs = EPOCHS,
                                         .verbose = MIX_SILENT);
    assert_no_error();
    assert_true(isfinite(mix_logs_get(mix_history_epoch(history, EPOCHS - 1), "loss")));
    size_t size;
    unsigned char *bits = bits_of(mix_model_weights(t.model), &size);
    got = digest(bits, size);
    free(bits);
  }
  return got;
}

static void weights_have_the_recorded_digest(void **state) {
  const digest_case *c = *state;
  if (!on_host()) SKIP("other devices sum in their own order");
  mix_cpu_override(0);
  mix_host_take_all_threads(true);
  uint64_t got[MAX_THREADS];
  for (int threads = 1; threads <= MAX_THREADS; threads++) {
    mix_set_threads(threads);
    got[threads - 1] = digest_of_weights(c);
  }
  mix_host_take_all_threads(false);
  mix_set_threads(0);
  mix_cpu_override(UINT32_MAX);
  for (int threads = 1; threads <= MAX_THREADS; threads++)
    if (got[threads - 1] != c->model->digests[c->policy])
      fail_msg("%s, %d threads: digest 0x%016llx, recorded 0x%016llx", c->name, threads,
               (unsigned long long)got[threads - 1], (unsigned long long)c->model->digests[c->policy]);
}

int main(void) {
  static digest_case cases[MODELS * POLICIES];
  struct CMUnitTest tests[MODELS * POLICIES];
  for (int i = 0; i < MODELS * POLICIES; i++) {
    digest_case *c = &cases[i];
    c->model = &models[i / POLICIES], c->policy = i % POLICIES;
    snprintf(c->name, NAME, "%s, %s", c->model->model, policies[c->policy]);
    tests[i] = (struct CMUnitTest){c->name, weights_have_the_recorded_digest, NULL, NULL, c};
  }
  return _cmocka_run_group_tests("digests", tests, MODELS * POLICIES, NULL, NULL);
}
