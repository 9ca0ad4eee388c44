// The guide's model in C++, through mixtape.hpp: it trains, errors are exceptions that carry the library's
// message, and a scope ends when one passes.
#include "run_tests.hpp"

#include <cstdio>
#include <cstring>

namespace {

mix_model *guide_model() {
  mix_tensor *inputs = mix::with(mix_input_with, [](auto &o) { o.shape = mix::shape(784); });
  mix_tensor *x = inputs;
  for (int i = 0; i < 2; i++) {
    x = mix::call(mix::with(mix_dense_with,
                            [](auto &o) {
                              o.units = 64;
                              o.activation = "relu";
                            }),
                  x);
  }
  x = mix::call(mix::with(mix_dense_with, [](auto &o) { o.units = 10; }), x);
  mix_tensor *outputs = mix::call(mix::with(mix_activation_with,
                                            [](auto &o) {
                                              o.activation = "softmax";
                                              o.dtype = "float32";
                                            }),
                                  x);
  return mix::with(mix_model_with, [&](auto &o) {
    o.inputs = inputs;
    o.outputs = outputs;
  });
}

// The drawn digits are learnt to 90 % within three epochs, from 10 % by guessing.
bool trains() {
  mix::scope scope;
  mix::check(mix_set_global_policy("mixed_float16"));
  mix_set_seed(1);
  mix_model *model = guide_model();
  mix::with(mix_model_compile_with, model, [](auto &o) {
    o.loss = "sparse_categorical_crossentropy";
    o.metrics[0] = "accuracy";
    o.image_bytes = true;
  });
  const mix_digits digits = mix::with(mix_digits_load_with, [](auto &) {});
  mix::with(mix_model_fit_with, model, [&](auto &o) {
    o.x = digits.x_train;
    o.y = digits.y_train;
    o.batch_size = 128;
    o.epochs = 3;
    o.quiet = true;
  });
  const mix_logs *test = mix::with(mix_model_evaluate_with, model, [&](auto &o) {
    o.x = digits.x_test;
    o.y = digits.y_test;
    o.quiet = true;
  });
  std::printf("accuracy %g\n", mix_logs_get(test, "accuracy"));
  return mix_logs_get(test, "accuracy") > 0.9;
}

void set(void *flag) { *static_cast<bool *>(flag) = true; }

bool throws_the_message() {
  bool released = false;
  try {
    mix::scope scope;
    mix::with(mix_callback_with, [&](auto &o) {
      o.context = &released;
      o.release = set;
    });
    mix::with(mix_dense_with, [](auto &o) {
      o.units = 4;
      o.activation = "rleu";
    });
  } catch (const mix::error &e) {
    std::printf("%s: %s\n", e.name(), e.what());
    return e.status() == MIX_VALUE_ERROR && std::strstr(e.what(), "did you mean 'relu'") && released &&
           mix_error() == MIX_OK;
  }
  return false;
}

// With an error pending no scope begins: what is made next belongs to `scope`, and leaves it for `around`.
bool begins_no_scope() {
  bool released = false, threw = false;
  mix::scope around;
  {
    mix::scope scope;
    mix_set_global_policy("float17");
    try {
      mix::scope inner;
    } catch (const mix::error &) { threw = true; }
    mix_scope_leave(mix::with(mix_callback_with, [&](auto &o) {
      o.context = &released;
      o.release = set;
    }));
  }
  return threw && !released;
}

// kept objects outlive the scope, copies and moves count, and the last one releases.
bool keeps() {
  bool released = false;
  {
    mix::kept<mix_callback> first, second;
    {
      mix::scope scope;
      first = mix::kept(mix::with(mix_callback_with, [&](auto &o) {
        o.context = &released;
        o.release = set;
      }));
    }
    second = first;
    first = mix::kept<mix_callback>();
    mix::kept<mix_callback> third = std::move(second);
    if (released || second.get() || !third.get()) return false;
  }
  return released;
}

bool makes_lists_and_shapes() {
  mix::scope scope;
  mix_tensor *one = mix::check(mix_scalar(1, MIX_FLOAT32));
  const mix_shape shape = mix::shape(2, 3);
  return mix_list_count(mix::list(one, one, one)) == 3 && mix_list_count(mix::list()) == 0 &&
         shape.rank == 2 && shape.dims[1] == 3 && mix::shape().rank == 0;
}

// One argument before the options, a text, and two.
bool takes_arguments_before_options() {
  mix::scope scope;
  const double values[] = {1, 3};
  mix_tensor *y = mix::check(mix_tensor_from_doubles(values, MIX_FLOAT32, mix::shape(2, 1)));
  mix_tensor *zeros = mix::with(mix_activate_with, "relu", [y](auto &o) { o.x = mix_negative(y); });
  mix_loss *mse = mix::with(mix_loss_with, [](auto &o) { o.loss = "mse"; });
  mix_tensor *loss = mix::with(mix_loss_call_with, mse, y, [zeros](auto &o) { o.y_pred = zeros; });
  return mix::check(mix_tensor_item(loss)) == 5; /* (1 + 9) / 2 */
}

} // namespace

int main() {
  return run_tests({{"trains", trains},
                    {"throws_the_message", throws_the_message},
                    {"begins_no_scope", begins_no_scope},
                    {"keeps", keeps},
                    {"makes_lists_and_shapes", makes_lists_and_shapes},
                    {"takes_arguments_before_options", takes_arguments_before_options}});
}
