/* What the CUDA runtime and cuBLASLt do by themselves, for a backend of our own: a line of JSON a fact. One
 * part is compiled: PART_upload (bytes a second from the host, the cost of a launch) or PART_products (the
 * guide's products in float16 with 16-bit results, and the epilogues that each has).
 *
 *   nvcc -O2 -arch=native -DPART_products native.cu -lcublasLt */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    const int status = (int)(call);                                                                          \
    if (status) {                                                                                            \
      fprintf(stderr, "%s: %d\n", #call, status);                                                            \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef PART_upload

__global__ void nothing(void) {}

static void upload(const char *kind, size_t bytes, void *device, const void *host) {
  double best = 1e9;
  for (int round = 0; round < 10; round++) {
    const double begin = now();
    CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, 0));
    CHECK(cudaStreamSynchronize(0));
    const double seconds = now() - begin;
    if (seconds < best) best = seconds;
  }
  printf("{\"upload\": \"%s\", \"bytes\": %zu, \"seconds\": %.3e, \"bytes_a_second\": %.4g}\n", kind, bytes,
         best, (double)bytes / best);
}

int main(void) {
  const size_t largest = (size_t)1 << 28;
  void *device, *pinned, *pageable = malloc(largest);
  if (!pageable) return 1;
  for (size_t i = 0; i < largest; i += 4096) ((char *)pageable)[i] = 1;
  CHECK(cudaMalloc(&device, largest));
  CHECK(cudaMallocHost(&pinned, largest));
  /* 8192 images of 784 values as uint8, float16 and float32, and a large copy. */
  const size_t sizes[] = {(size_t)8192 * 784, (size_t)8192 * 784 * 2, (size_t)8192 * 784 * 4, largest};
  for (int i = 0; i < 4; i++) {
    upload("pageable", sizes[i], device, pageable);
    upload("pinned", sizes[i], device, pinned);
  }
  const int launches = 10000;
  nothing<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  const double begin = now();
  for (int i = 0; i < launches; i++) nothing<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  printf("{\"launch_seconds\": %.3e}\n", (now() - begin) / launches);
  return 0;
}

#else

enum { CANDIDATES = 8, ROUNDS = 20, WORKSPACE = 64 << 20 };

static cublasLtHandle_t handle;
static void *workspace, *bias, *mask;

static cublasLtMatrixLayout_t layout(int rows, int columns) {
  cublasLtMatrixLayout_t made;
  CHECK(cublasLtMatrixLayoutCreate(&made, CUDA_R_16F, (uint64_t)rows, (uint64_t)columns, rows));
  return made;
}

/* Column-major (m, k) times (k, n) in float16, summed in float32, stored in float16. */
static void product(const char *name, int m, int n, int k, cublasLtEpilogue_t epilogue, const void *a,
                    const void *b, void *c) {
  cublasLtMatmulDesc_t operation;
  CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  if (epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS || epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD) {
    const int64_t leading = (m + 127) / 128 * 128;
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &mask,
                                         sizeof mask));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &leading,
                                         sizeof leading));
  }
  cublasLtMatrixLayout_t of_a = layout(m, k), of_b = layout(k, n), of_c = layout(m, n);
  cublasLtMatmulPreference_t preference;
  const size_t most = WORKSPACE;
  CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most));
  cublasLtMatmulHeuristicResult_t found[CANDIDATES];
  int count = 0;
  const int status = (int)cublasLtMatmulAlgoGetHeuristic(handle, operation, of_a, of_b, of_c, of_c,
                                                         preference, CANDIDATES, found, &count);
  const float one = 1, zero = 0;
  double best = 1e9;
  int first = 0;
  for (int i = 0; i < count; i++) {
    double seconds = 1e9;
    for (int round = -1; round < ROUNDS; round++) {
      const double begin = now();
      CHECK(cublasLtMatmul(handle, operation, &one, a, of_a, b, of_b, &zero, c, of_c, c, of_c, &found[i].algo,
                           workspace, WORKSPACE, 0));
      CHECK(cudaStreamSynchronize(0));
      if (round >= 0 && now() - begin < seconds) seconds = now() - begin;
    }
    if (seconds < best) best = seconds, first = i;
  }
  if (count)
    printf("{\"product\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"algorithms\": %d, \"best\": %d, "
           "\"seconds\": %.3e, \"flops\": %.4g}\n",
           name, m, n, k, count, first, best, 2.0 * m * n * k / best);
  else
    printf("{\"product\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"algorithms\": 0, \"status\": %d}\n",
           name, m, n, k, status);
}

int main(void) {
  const size_t bytes = (size_t)8192 * 4096 * 2;
  void *a, *b, *c;
  CHECK(cublasLtCreate(&handle));
  CHECK(cudaMalloc(&workspace, WORKSPACE));
  CHECK(cudaMalloc(&bias, 8192 * 4));
  CHECK(cudaMalloc(&mask, bytes));
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&c, bytes));
  CHECK(cudaMemset(a, 0x11, bytes));
  CHECK(cudaMemset(b, 0x11, bytes));
  printf("{\"cublaslt\": %zu}\n", cublasLtGetVersion());
  const struct {
    const char *name;
    cublasLtEpilogue_t epilogue;
  } epilogues[] = {{"default", CUBLASLT_EPILOGUE_DEFAULT},
                   {"bias", CUBLASLT_EPILOGUE_BIAS},
                   {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS},
                   {"relu_aux_bias", CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
                   {"drelu_bgrad", CUBLASLT_EPILOGUE_DRELU_BGRAD}};
  for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
    product(epilogues[i].name, 4096, 8192, 784, epilogues[i].epilogue, a, b, c);
    product(epilogues[i].name, 4096, 8192, 4096, epilogues[i].epilogue, a, b, c);
    product(epilogues[i].name, 4096, 128, 4096, epilogues[i].epilogue, a, b, c);
  }
  return 0;
}

#endif
