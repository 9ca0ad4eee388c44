/* mixtape new: a folder with a project that builds against the installed library. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/text.h"
#include "formats/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void usage(FILE *out) {
  fprintf(out,
          "usage: mixtape new FOLDER\n"
          "\n"
          "Makes FOLDER with a program in C that trains a small model, a test of it, a CMakeLists.txt and\n"
          "a Makefile, which builds without CMake. Both take the installed library: CMake by\n"
          "CMAKE_PREFIX_PATH, make by PKG_CONFIG_PATH, where it is not in the system's folders.\n"
          "\n"
          "  FOLDER       a new one; its last part, letters, digits and _, is the program's name\n"
          "  -h, --help   this text\n");
}

/* ---- the files; @ stands for the name ---- */

static const char cmake_text[] = "cmake_minimum_required(VERSION 3.16)\n"
                                 "project(@ LANGUAGES C)\n"
                                 "if(NOT CMAKE_BUILD_TYPE)\n"
                                 "  set(CMAKE_BUILD_TYPE Release)\n"
                                 "endif()\n"
                                 "find_package(mixtape " MIXTAPE_VERSION " REQUIRED)\n"
                                 "\n"
                                 "enable_testing()\n"
                                 "foreach(program @ test_@)\n"
                                 "  add_executable(${program} ${program}.c model.c)\n"
                                 "  set_target_properties(${program} PROPERTIES C_STANDARD 11)\n"
                                 "  target_link_libraries(${program} PRIVATE mixtape::mixtape)\n"
                                 "endforeach()\n"
                                 "add_test(NAME @ COMMAND test_@)\n";

static const char make_text[] =
    "# make, make test. Where the library is not in the system's folders:\n"
    "# PKG_CONFIG_PATH=PREFIX/lib/pkgconfig make\n"
    "CFLAGS ?= -O2 -Wall -Wextra\n"
    "MIXTAPE := $(shell pkg-config --cflags --libs mixtape)\n"
    "ifeq ($(MIXTAPE),)\n"
    "$(error pkg-config does not find mixtape: set PKG_CONFIG_PATH to the folder of mixtape.pc)\n"
    "endif\n"
    "# The programs find the library where it is now.\n"
    "FOUND := -Wl,-rpath,$(shell pkg-config --variable=libdir mixtape)\n"
    "\n"
    "all: build/@ build/test_@\n"
    "\n"
    "build/%: %.c model.c model.h\n"
    "\t@@mkdir -p build\n"
    "\t$(CC) -std=c11 $(CFLAGS) $< model.c -o $@@ $(MIXTAPE) $(FOUND)\n"
    "\n"
    "test: build/test_@\n"
    "\tbuild/test_@\n"
    "\n"
    "clean:\n"
    "\trm -rf build\n"
    "\n"
    ".PHONY: all test clean\n";

static const char header_text[] =
    "/* The model, for the program and for its test. */\n"
    "#pragma once\n"
    "#include <mixtape/mixtape.h>\n"
    "\n"
    "/* A compiled classifier of ten classes. NULL with the error recorded. */\n"
    "mix_model *make_model(void);\n";

static const char model_text[] =
    "#include \"model.h\"\n"
    "\n"
    "mix_model *make_model(void) {\n"
    "  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784));\n"
    "  mix_tensor *x = mix_call(mix_dense(64, \"relu\"), inputs);\n"
    "  x = mix_call(mix_dense(10), x);\n"
    "  /* 16 bits are not enough for the sums of a softmax. */\n"
    "  mix_tensor *outputs = mix_call(mix_activation(\"softmax\", .dtype = \"float32\"), x);\n"
    "  mix_model *model = mix_model_new(inputs, outputs);\n"
    "  mix_model_compile(model, .loss = \"sparse_categorical_crossentropy\", .optimizer = mix_adam(),\n"
    "                    .metrics = {\"accuracy\"});\n"
    "  return mix_error() ? NULL : model;\n"
    "}\n";

static const char program_text[] =
    "/* Trains on digits that the library draws, and writes the model to @.keras. */\n"
    "#include \"model.h\"\n"
    "#include <stdio.h>\n"
    "\n"
    "int main(void) {\n"
    "  mix_set_log_callback(mix_log_to_stderr, NULL); /* the library prints nothing by itself */\n"
    "  mix_scope *scope = mix_scope_begin();          /* owns all that follows */\n"
    "  mix_set_global_policy(\"mixed_float16\");\n"
    "  mix_digits digits = mix_digits_load();\n"
    "  mix_model *model = make_model();\n"
    "  mix_model_fit(model, digits.x_train, digits.y_train, .batch_size = 128, .epochs = 3);\n"
    "  mix_logs *test = mix_model_evaluate(model, digits.x_test, digits.y_test, .verbose = MIX_SILENT);\n"
    "  if (test) printf(\"test accuracy: %g\\n\", mix_logs_get(test, \"accuracy\"));\n"
    "  mix_model_save(model, \"@.keras\");\n"
    "  mix_scope_end(scope);\n"
    "  return MIX_EXIT_CODE(); /* prints an error, if there was one */\n"
    "}\n";

static const char test_text[] =
    "/* The model learns: its loss on a few digits falls. */\n"
    "#include \"model.h\"\n"
    "#include <stdio.h>\n"
    "\n"
    "int main(void) {\n"
    "  mix_scope *scope = mix_scope_begin();\n"
    "  mix_set_seed(1);\n"
    "  mix_digits digits = mix_digits_load(.train = 256, .test = 64);\n"
    "  mix_history *history =\n"
    "      mix_model_fit(make_model(), digits.x_train, digits.y_train, .epochs = 5, .quiet = true);\n"
    "  const double first = history ? mix_logs_get(mix_history_epoch(history, 0), \"loss\") : 0,\n"
    "               last = history ? mix_logs_get(mix_history_epoch(history, 4), \"loss\") : 0;\n"
    "  printf(\"loss %g, then %g\\n\", first, last);\n"
    "  mix_scope_end(scope);\n"
    "  const int code = MIX_EXIT_CODE();\n"
    "  return code ? code : !(last < first);\n"
    "}\n";

static const struct {
  const char *name, *text;
} files[] = {{"CMakeLists.txt", cmake_text}, {"Makefile", make_text}, {"model.h", header_text},
             {"model.c", model_text},        {"@.c", program_text},   {"test_@.c", test_text}};

/* ---- writing them ---- */

/* @ becomes the name, and @@ @. */
static void put_with_name(mix_text *to, const char *text, const char *name) {
  for (const char *at = strchr(text, '@'); at; text = at + 1, at = strchr(text, '@')) {
    mix_text_put(to, "%.*s%s", (int)(at - text), text, at[1] == '@' ? "@" : name);
    at += at[1] == '@';
  }
  mix_text_put(to, "%s", text);
}

static mix_text path_of(const char *folder, size_t index, const char *name) {
  mix_text path = {.grows = true};
  mix_text_put(&path, "%s/", folder);
  put_with_name(&path, files[index].name, name);
  return path;
}

static bool write_file(const char *folder, size_t index, const char *name) {
  mix_text path = path_of(folder, index, name), text = {.grows = true};
  put_with_name(&text, files[index].text, name);
  const bool good = !path.failed && !text.failed &&
                    mix_file_replace(path.text, &(mix_bytes){text.text, strlen(text.text)}, 1, "new");
  mix_free(path.text);
  mix_free(text.text);
  return good;
}

static bool make_project(const char *folder, const char *name) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (!write_file(folder, i, name)) return false;
  return true;
}

/* So that the same command can be tried again. */
static void remove_project(const char *folder, const char *name) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    mix_text path = path_of(folder, i, name);
    if (!path.failed) unlink(path.text);
    mix_free(path.text);
  }
  rmdir(folder);
}

/* The last part of the path, without slashes behind it; cuts `folder`. */
static const char *name_of(char *folder) {
  for (size_t length = strlen(folder); length > 1 && folder[length - 1] == '/';) folder[--length] = 0;
  const char *slash = strrchr(folder, '/');
  return slash ? slash + 1 : folder;
}

/* A name of files, of targets of CMake and of make. */
static bool is_name(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                    others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return *name && strchr(letters, *name) && strspn(name, others) == strlen(name) && strlen(name) <= 64 &&
         !mix_is_choice("Makefile|all|clean|edit_cache|help|install|list_install_components|model|package|"
                        "preinstall|rebuild_cache|test",
                        name);
}

static int make(char *folder) {
  const char *name = name_of(folder);
  if (!is_name(name)) {
    fprintf(stderr,
            "mixtape new: '%s' is no name of a program; expected up to 64 letters, digits and _, a letter "
            "first, and none of all, clean, help, install, model, package and test\n",
            name);
    return CLI_USAGE;
  }
  if (mkdir(folder, 0777)) {
    cli_say("new", "%s cannot be made: %s", folder, strerror(errno));
    return CLI_FAILED;
  }
  if (!make_project(folder, name)) {
    remove_project(folder, name);
    return cli_fail();
  }
  printf("%s has a program, a test, CMakeLists.txt and a Makefile. Next: make -C %s test\n", folder, folder);
  return CLI_OK;
}

int cli_new(int argc, char **argv) {
  if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
    usage(stdout);
    return CLI_OK;
  }
  if (argc == 2 && *argv[1] != '-') return make(argv[1]);
  fprintf(stderr, argc < 2 ? "mixtape new: the folder is missing; `mixtape new --help` explains\n"
                  : argc > 2 && *argv[1] != '-'
                      ? "mixtape new: expected one folder; `mixtape new --help` explains\n"
                      : "mixtape new: it has no options but --help; `mixtape new --help` explains\n");
  return CLI_USAGE;
}
