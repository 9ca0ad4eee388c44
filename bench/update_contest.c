#include "update_contest.h"

#include "base/alloc.h"
#include <omp.h>
#include <string.h>

static mix_list *update_body(void *context, mix_list *arguments) {
  bench_updated *x = context;
  mix_tensor *half = x->copies ? mix_cast(mix_variable_value(x->variable), MIX_FLOAT16) : NULL;
  mix_tensor *used = half ? mix_slice(half, MIX_SHAPE(0, 0), MIX_SHAPE(1, 1)) : NULL;
  mix_optimizer_apply_gradients(x->optimizer, arguments, mix_list_of(x->variable));
  return used ? mix_list_of(used) : NULL;
}

bool bench_updated_make(bench_updated *x, mix_optimizer *optimizer, mix_tensor *gradient, bool copies) {
  *x = (bench_updated){.optimizer = optimizer, .copies = copies};
  if (!gradient || mix_evaluate(1, &gradient) != MIX_OK) return false;
  x->variable = mix_variable_new(mix_fill(mix_tensor_shape(gradient), 0.5, MIX_FLOAT32));
  x->function = mix_function_new(update_body, x, .name = "update");
  x->arguments = mix_list_of(gradient);
  return x->arguments && mix_optimizer_build(x->optimizer, mix_list_of(x->variable)) == MIX_OK;
}

bool bench_updated_run(void *context) {
  bench_updated *x = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(x->function, x->arguments) != NULL; }
  return good;
}

bool bench_copied_make(bench_copied *x, size_t bytes, int threads) {
  *x = (bench_copied){
      .from = mix_alloc_buffer(bytes), .to = mix_alloc_buffer(bytes), .bytes = bytes, .threads = threads};
  if (!x->from || !x->to) return false;
  memset(x->from, 1, bytes);
  return true;
}

void bench_copied_free(bench_copied *x) {
  mix_free_buffer(x->from, x->bytes);
  mix_free_buffer(x->to, x->bytes);
}

bool bench_copied_run(void *context) {
  const bench_copied *x = context;
#pragma omp parallel num_threads(x->threads)
  {
    const size_t share = x->bytes / (size_t)x->threads / 64 * 64,
                 begin = share * (size_t)omp_get_thread_num();
    const size_t end = omp_get_thread_num() + 1 == omp_get_num_threads() ? x->bytes : begin + share;
    memcpy(x->to + begin, x->from + begin, end - begin);
  }
  return true;
}
