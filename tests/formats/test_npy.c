/* .npy files: the bytes that numpy.save writes, and every kind of damage. */
#include "data/support.h"

#include "base/alloc.h"
#include "formats/npy.h"
#include "tensor/convert.h"
#include <mixtape/arrays.h>
#include <mixtape/ops.h>
#include <mixtape/variable.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* numpy.save('a.npy', numpy.arange(6, dtype='<f4').reshape(2, 3)) of NumPy 2.4: 128 bytes of header (numpy's
 * padding for the first dimension to grow brings it over 64), then the elements. */
static const char numpy_header[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n";

static void writes_the_bytes_of_numpy(void **state) {
  (void)state;
  const float elements[6] = {0, 1, 2, 3, 4, 5};
  size_t size;
  assert_int_equal(sizeof numpy_header - 1, 128);
  assert_int_equal(mix_npy_save(in_folder("a.npy"), mix_tensor_from(elements, MIX_FLOAT32, MIX_SHAPE(2, 3))),
                   MIX_OK);
  const unsigned char *data = read_file(in_folder("a.npy"), &size);
  assert_int_equal(size, 128 + sizeof elements);
  assert_memory_equal(data, numpy_header, 128);
  assert_memory_equal(data + 128, elements, sizeof elements);
  assert_int_equal(folder_count(), 1); /* no part file remains */
}

/* The text after "'shape': " for shapes of no, one and eight dimensions. */
static void writes_shapes_as_python_tuples(void **state) {
  (void)state;
  char header[MIX_NPY_HEADER_MAX];
  const struct {
    mix_shape shape;
    mix_dtype dtype;
    const char *text;
  } cases[] = {
      {{.rank = 0}, MIX_FLOAT64, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
      {MIX_SHAPE(7), MIX_UINT8, "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }"},
      {MIX_SHAPE(1, 2, 3, 4, 5, 6, 7, 8), MIX_BOOL,
       "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 2, 3, 4, 5, 6, 7, 8), }"},
      {MIX_SHAPE(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX),
       MIX_INT64,
       "{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t size = mix_npy_write_header(cases[i].dtype, cases[i].shape, header);
    assert_true(size <= sizeof header);
    assert_int_equal(size % 64, 0);
    assert_memory_equal(header + 10, cases[i].text, strlen(cases[i].text));
    assert_int_equal(header[size - 1], '\n');
    assert_int_equal((unsigned char)header[8] + 256 * (unsigned char)header[9], size - 10);
  }
}

static mix_tensor *parse(const bytes *b) { return mix_npy_read_memory("memory", b->data, b->size); }

static mix_tensor *parse_array(const char *descr, const char *shape, const char *fortran,
                               const void *elements, size_t size) {
  char dictionary[200];
  bytes b = {.size = 0};
  snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n", descr,
           fortran, shape);
  put_npy(&b, 1, dictionary, elements, size);
  return parse(&b);
}

static void assert_values(mix_tensor *tensor, mix_dtype dtype, mix_shape shape, const double *values) {
  if (!tensor) print_message("%s\n", mix_error_message());
  assert_non_null(tensor);
  assert_int_equal(mix_tensor_dtype(tensor), dtype);
  assert_true(mix_shape_equal(mix_tensor_shape(tensor), shape));
  const void *data = mix_tensor_data(tensor);
  assert_non_null(data);
  for (int64_t i = 0; i < mix_shape_size(shape); i++)
    assert_true(mix_load_double(data, dtype, i) == values[i]);
}

static void reads_every_dtype_in_both_byte_orders(void **state) {
  (void)state;
  /* 1 and -2 (unsigned: 1 and the largest number) as bit patterns */
  const struct {
    const char *code;
    int width;
    mix_dtype dtype;
    uint64_t bits[2];
    double values[2];
  } cases[] = {
      {"f2", 2, MIX_FLOAT16, {0x3c00, 0xc000}, {1, -2}},
      {"f4", 4, MIX_FLOAT32, {0x3f800000, 0xc0000000}, {1, -2}},
      {"f8", 8, MIX_FLOAT64, {0x3ff0000000000000, 0xc000000000000000}, {1, -2}},
      {"i1", 1, MIX_INT8, {1, 0xfe}, {1, -2}},
      {"i2", 2, MIX_INT16, {1, 0xfffe}, {1, -2}},
      {"i4", 4, MIX_INT32, {1, 0xfffffffe}, {1, -2}},
      {"i8", 8, MIX_INT64, {1, 0xfffffffffffffffe}, {1, -2}},
      {"u1", 1, MIX_UINT8, {1, 0xff}, {1, 255}},
      {"u2", 2, MIX_INT32, {1, 0xffff}, {1, 65535}},
      {"u4", 4, MIX_INT64, {1, 0xffffffff}, {1, 4294967295.0}},
      {"b1", 1, MIX_BOOL, {0, 7}, {0, 1}}, /* any nonzero byte is true, stored as 1 */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (const char *order = cases[i].width == 1 ? "|<>=" : "<>="; *order; order++) {
      bytes elements = {.size = 0};
      char descr[8];
      for (int j = 0; j < 2; j++)
        if (*order == '>')
          put_big(&elements, cases[i].bits[j], cases[i].width);
        else
          put_little(&elements, cases[i].bits[j], cases[i].width);
      snprintf(descr, sizeof descr, "%c%s", *order, cases[i].code);
      assert_values(parse_array(descr, "(2,)", "False", elements.data, elements.size), cases[i].dtype,
                    MIX_SHAPE(2), cases[i].values);
    }
}

static void reads_fortran_order(void **state) {
  (void)state;
  /* element (i, j, k) of shape (2, 3, 4) is 100 i + 10 j + k; in Fortran order i varies fastest */
  uint16_t elements[24];
  double values[24];
  for (int k = 0, n = 0; k < 4; k++)
    for (int j = 0; j < 3; j++)
      for (int i = 0; i < 2; i++) elements[n++] = (uint16_t)(100 * i + 10 * j + k);
  for (int i = 0, n = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++) values[n++] = 100 * i + 10 * j + k;
  assert_values(parse_array("<i2", "(2, 3, 4)", "True", elements, sizeof elements), MIX_INT16,
                MIX_SHAPE(2, 3, 4), values);
  assert_values(parse_array("<u2", "(2, 3, 4)", "True", elements, sizeof elements), MIX_INT32,
                MIX_SHAPE(2, 3, 4), values);
  for (int i = 0; i < 24; i++) elements[i] = (uint16_t)(elements[i] << 8 | elements[i] >> 8);
  assert_values(parse_array(">u2", "(2, 3, 4)", "True", elements, sizeof elements), MIX_INT32,
                MIX_SHAPE(2, 3, 4), values);
  assert_values(parse_array("<i2", "(1,)", "True", &(int16_t){3}, 2), MIX_INT16, MIX_SHAPE(1), &(double){3});
  assert_values(parse_array("<i2", "()", "True", &(int16_t){3}, 2), MIX_INT16, MIX_SCALAR, &(double){3});
}

static void reads_other_spellings_of_a_header(void **state) {
  (void)state;
  const float elements[2] = {1, 2};
  static const char *const dictionaries[] = {
      "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}", /* other quotes, order and spaces */
      "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , ) } ", /* no trailing comma */
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }",         /* Python 2 */
      "{'descr': 'f4', 'fortran_order': False, 'shape': (2,), }",           /* native order without a mark */
  };
  for (size_t i = 0; i < sizeof dictionaries / sizeof dictionaries[0]; i++)
    for (int version = 1; version <= 3; version++) {
      bytes b = {.size = 0};
      put_npy(&b, version, dictionaries[i], elements, sizeof elements);
      assert_values(parse(&b), MIX_FLOAT32, MIX_SHAPE(2), (const double[]){1, 2});
    }
  assert_values(parse_array("<f4", "(0, 3)", "False", NULL, 0), MIX_FLOAT32, MIX_SHAPE(0, 3), NULL);
}

static void every_dtype_survives_a_file(void **state) {
  (void)state;
  const double values[6] = {0, 1, 0, 1, 1, 0}, wider[6] = {0, -1, 2, -3, 100, -128};
  for (mix_dtype dtype = MIX_FLOAT16; dtype <= MIX_BOOL; dtype++) {
    const double *expected = dtype == MIX_BOOL || dtype == MIX_UINT8 ? values : wider;
    mix_tensor *tensor = mix_tensor_from_doubles(expected, dtype, MIX_SHAPE(3, 2));
    assert_int_equal(mix_npy_save(in_folder("round.npy"), tensor), MIX_OK);
    assert_values(mix_npy_load(in_folder("round.npy")), dtype == MIX_BFLOAT16 ? MIX_FLOAT32 : dtype,
                  MIX_SHAPE(3, 2), expected);
  }
}

static void nan_and_infinity_keep_their_bits(void **state) {
  (void)state;
  const uint32_t bits[4] = {0x7fc00001, 0xff800000, 0x00000001, 0x80000000};
  assert_int_equal(mix_npy_save(in_folder("bits.npy"), mix_tensor_from(bits, MIX_FLOAT32, MIX_SHAPE(4))),
                   MIX_OK);
  mix_tensor *back = mix_npy_load(in_folder("bits.npy"));
  assert_non_null(back);
  assert_memory_equal(mix_tensor_data(back), bits, sizeof bits);
}

static void dtypes_without_a_tensor_are_errors(void **state) {
  (void)state;
  const char zeros[64] = {0};
  static const struct {
    const char *descr, *message;
  } cases[] = {{"<V2", "bfloat16"}, {"|V2", "bfloat16"},     {"|O", "Python"},   {"<c8", "'<c8'"},
               {"<u8", "'<u8'"},    {"<U5", "'<U5'"},        {"|S3", "'|S3'"},   {"<M8[ns]", "M8"},
               {"<f16", "'<f16'"},  {"<f3", "'<f3'"},        {"<f4x", "'<f4x'"}, {"", "''"},
               {"<", "'<'"},        {"<f99999999999", "f99"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_null(parse_array(cases[i].descr, "(2,)", "False", zeros, 4));
    assert_failed(MIX_UNSUPPORTED, cases[i].message);
  }
  bytes b = {.size = 0};
  put_npy(&b, 1, "{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (2,), }", zeros,
          16);
  assert_null(parse(&b));
  assert_failed(MIX_UNSUPPORTED, "structured");
  assert_null(parse_array("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "False", zeros, 4));
  assert_failed(MIX_UNSUPPORTED, "8 dimensions");
}

static void damaged_headers_are_errors(void **state) {
  (void)state;
  const char zeros[64] = {0};
  static const char *const dictionaries[] = {
      "",
      "{",
      "}",
      "{}",
      "{'descr'",
      "{'descr':",
      "[]",
      "None",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'shape': (2,)}",
      "{'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} more",
      "{'descr': '<f4\\x', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': <f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': 4, 'fortran_order': False, 'shape': (2,)}",
  };
  for (size_t i = 0; i < sizeof dictionaries / sizeof dictionaries[0]; i++) {
    bytes b = {.size = 0};
    put_npy(&b, 1, dictionaries[i], zeros, 8);
    if (parse(&b)) print_message("accepted: %s\n", dictionaries[i]);
    assert_failed(MIX_FORMAT_ERROR, "memory");
  }
}

/* The product of the dimensions is compared with the file size before that memory is allocated. */
static void absurd_sizes_allocate_nothing(void **state) {
  (void)state;
  static const char *const shapes[] = {"(1000000000000,)",
                                       "(4294967296, 4294967296)",
                                       "(9223372036854775807, 9223372036854775807)",
                                       "(9223372036854775807,)",
                                       "(3000000000, 3000000000, 2)",
                                       "(3,)",
                                       "(1,)",
                                       "()",
                                       "(0,)"};
  const float elements[2] = {1, 2};
  mix_shutdown();
  mix_buffer_peak_reset();
  size_t before = mix_buffer_peak();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    assert_null(parse_array("<f4", shapes[i], "False", elements, sizeof elements));
    assert_failed(MIX_FORMAT_ERROR, NULL);
  }
  assert_int_equal(mix_buffer_peak(), before);
  bytes b = {.size = 0}; /* a header of 4 GB in a file of 40 bytes */
  put(&b, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  put(&b, numpy_header, 28);
  assert_null(parse(&b));
  assert_failed(MIX_FORMAT_ERROR, "absurdly long");
}

static void cut_at_every_byte_is_an_error(void **state) {
  (void)state;
  bytes b = {.size = 0};
  put_npy(&b, 1, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }\n", "abcdefghijkl", 12);
  assert_non_null(parse(&b));
  for (size_t size = 0; size < b.size; size++) {
    unsigned char *exact =
        malloc(size ? size : 1); /* exact size: the sanitizer sees an overrun of one byte */
    memcpy(exact, b.data, size);
    assert_null(mix_npy_read_memory("cut", exact, size));
    assert_failed(MIX_FORMAT_ERROR, "cut");
    write_file(in_folder("cut.npy"), exact, size);
    assert_null(mix_npy_load(in_folder("cut.npy")));
    assert_failed(MIX_FORMAT_ERROR, "cut.npy");
    free(exact);
  }
  put(&b, "x", 1);
  assert_null(parse(&b));
  assert_failed(MIX_FORMAT_ERROR, "more than one array");
}

static void paths_that_cannot_be_used(void **state) {
  (void)state;
  mix_tensor *tensor = mix_scalar(1, MIX_FLOAT32);
  assert_null(mix_npy_load(in_folder("absent.npy")));
  assert_failed(MIX_IO_ERROR, "absent.npy");
  assert_null(mix_npy_load(test_folder));
  assert_failed(MIX_IO_ERROR, "regular file");
  assert_int_equal(mkfifo(in_folder("fifo.npy"), 0600), 0);
  alarm(20); /* without a writer, opening a FIFO would block forever */
  assert_null(mix_npy_load(in_folder("fifo.npy")));
  alarm(0);
  assert_failed(MIX_IO_ERROR, "regular file");
  assert_null(mix_npy_load(NULL));
  assert_failed(MIX_VALUE_ERROR, "path");
  assert_int_equal(mix_npy_save(in_folder("no/such/folder.npy"), tensor), MIX_IO_ERROR);
  assert_failed(MIX_IO_ERROR, "folder.npy");
  assert_int_equal(mix_npy_save("/dev/null", tensor), MIX_IO_ERROR); /* a rename would replace the device */
  assert_failed(MIX_IO_ERROR, "/dev/null");
  assert_int_equal(mix_npy_save(in_folder("a.npy"), NULL), MIX_VALUE_ERROR);
  assert_failed(MIX_VALUE_ERROR, "tensor");
}

/* A limit on the file size simulates a full disk: write fails in the middle. */
static void a_full_disk_leaves_the_old_file(void **state) {
  (void)state;
  const char *path = in_folder("kept.npy");
  assert_int_equal(mix_npy_save(path, mix_scalar(42, MIX_FLOAT64)), MIX_OK);
  static float large[4096];
  mix_tensor *tensor = mix_tensor_from(large, MIX_FLOAT32, MIX_SHAPE(4096));
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, old.rlim_max}), 0);
  mix_status status = mix_npy_save(path, tensor);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(status, MIX_IO_ERROR);
  assert_failed(MIX_IO_ERROR, "kept.npy");
  assert_values(mix_npy_load(path), MIX_FLOAT64, MIX_SCALAR, &(double){42});
  assert_int_equal(folder_count(), 1);
}

static void allocation_failures_are_errors(void **state) {
  (void)state;
  const uint16_t elements[6] = {1, 2, 3, 4, 5, 6};
  for (int64_t count = 0;; count++) {
    mix_inject_allocation_failure(count);
    mix_tensor *tensor = parse_array("<u2", "(2, 3)", "True", elements, sizeof elements);
    mix_inject_allocation_failure(-1);
    if (tensor) {
      assert_true(count > 2); /* two scratch arrays and the tensor itself */
      break;
    }
    assert_failed(MIX_MEMORY_ERROR, NULL);
    assert_true(count < 100);
  }
}

static void pending_errors_stop_both(void **state) {
  (void)state;
  assert_null(mix_npy_load(in_folder("absent.npy")));
  assert_null(mix_npy_load(in_folder("other.npy")));
  assert_int_equal(mix_npy_save(in_folder("other.npy"), NULL), MIX_IO_ERROR);
  assert_failed(MIX_IO_ERROR, "absent.npy"); /* the first error is kept */
}

/* Saving to a symbolic link writes its target, whether it exists or not. The link remains. */
static void links_stay_links(void **state) {
  (void)state;
  const float old[1] = {7}, new[2] = {1, 2};
  char outside[600];
  assert_int_equal(mkdir(in_folder("models"), 0777), 0);
  assert_int_equal(mix_npy_save(in_folder("models/a.npy"), mix_tensor_from(old, MIX_FLOAT32, MIX_SHAPE(1))),
                   MIX_OK);
  assert_int_equal(symlink("models/a.npy", in_folder("latest.npy")), 0); /* relative to the link's folder */
  assert_int_equal(symlink("latest.npy", in_folder("best.npy")), 0);
  snprintf(outside, sizeof outside, "%s", in_folder("models/b.npy"));
  assert_int_equal(symlink(outside, in_folder("next.npy")), 0); /* the target does not exist yet */
  static const char *const rows[][2] = {{"best.npy", "models/a.npy"}, {"next.npy", "models/b.npy"}};
  for (int i = 0; i < 2; i++) {
    struct stat status;
    assert_int_equal(mix_npy_save(in_folder(rows[i][0]), mix_tensor_from(new, MIX_FLOAT32, MIX_SHAPE(2))),
                     MIX_OK);
    assert_int_equal(lstat(in_folder(rows[i][0]), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat(in_folder(rows[i][1]), &status), 0);
    assert_true(S_ISREG(status.st_mode));
    mix_tensor *read = mix_npy_load(in_folder(rows[i][0]));
    assert_non_null(read);
    assert_int_equal(mix_tensor_shape(read).dims[0], 2);
  }
  assert_int_equal(symlink("loop.npy", in_folder("loop.npy")), 0);
  assert_int_equal(mix_npy_save(in_folder("loop.npy"), mix_tensor_from(new, MIX_FLOAT32, MIX_SHAPE(2))),
                   MIX_IO_ERROR);
  mix_error_clear();
  assert_int_equal(folder_count(), 5); /* models, four links, and no part file */
}

static void *assign_many(void *context) {
  mix_variable *variable = context;
  for (int i = 0; i < 2000; i++)
    MIX_SCOPE { mix_variable_assign(variable, mix_fill(MIX_SHAPE(1 << 14), i, MIX_FLOAT32)); }
  return NULL;
}

/* The value at the time of the read, not a mix with a later assignment. */
static void a_variable_is_written_as_it_was_read(void **state) {
  (void)state;
  mix_variable *variable = mix_variable_new(mix_fill(MIX_SHAPE(1 << 14), 0, MIX_FLOAT32), .name = "v");
  pthread_t assigning;
  assert_int_equal(pthread_create(&assigning, NULL, assign_many, variable), 0);
  for (int round = 0; round < 50; round++)
    MIX_SCOPE {
      assert_int_equal(mix_npy_save(in_folder("v.npy"), mix_variable_value(variable)), MIX_OK);
      const float *read = mix_tensor_data(mix_npy_load(in_folder("v.npy")));
      for (int i = 1; i < 1 << 14; i++) assert_true(read[i] == read[0]);
    }
  pthread_join(assigning, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(writes_the_bytes_of_numpy),
      FOLDER_TEST(a_variable_is_written_as_it_was_read),
      FOLDER_TEST(writes_shapes_as_python_tuples),
      FOLDER_TEST(reads_every_dtype_in_both_byte_orders),
      FOLDER_TEST(reads_fortran_order),
      FOLDER_TEST(reads_other_spellings_of_a_header),
      FOLDER_TEST(every_dtype_survives_a_file),
      FOLDER_TEST(nan_and_infinity_keep_their_bits),
      FOLDER_TEST(dtypes_without_a_tensor_are_errors),
      FOLDER_TEST(damaged_headers_are_errors),
      FOLDER_TEST(absurd_sizes_allocate_nothing),
      FOLDER_TEST(cut_at_every_byte_is_an_error),
      FOLDER_TEST(paths_that_cannot_be_used),
      FOLDER_TEST(links_stay_links),
      FOLDER_TEST(a_full_disk_leaves_the_old_file),
      FOLDER_TEST(allocation_failures_are_errors),
      FOLDER_TEST(pending_errors_stop_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
