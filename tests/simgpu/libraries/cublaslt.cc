// libcublasLt.so.12: descriptors with their attributes, one algorithm for every product, and the
// check of operands.
#include <algorithm>
#include <cstdint>

#include "tests/simgpu/libraries/attributes.h"
#include "tests/simgpu/libraries/driver.h"
#include "tests/simgpu/libraries/types.h"

namespace {

using simgpu::Attributes;
using Status = int;
constexpr Status kExecutionFailed = 13;

// cublasLtMatmulDescAttributes_t and cublasLtMatrixLayoutAttribute_t.
constexpr int kComputeType = 0;
constexpr int kScaleType = 1;
constexpr int kTransposeA = 3;
constexpr int kLayoutType = 0;
constexpr int kLayoutRows = 2;
constexpr int kLayoutColumns = 3;
constexpr int kLayoutLeadingDimension = 4;
constexpr int kLayoutBatchCount = 5;

struct Algorithm {
  std::uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

template <typename Value>
void Set(Attributes* descriptor, int number, Value value) {
  descriptor->Set(number, &value, sizeof value);
}

template <typename Value>
double Number(const Attributes* descriptor, int number) {
  Value value = 0;
  descriptor->Get(number, &value, sizeof value);
  return static_cast<double>(value);
}

Status Get(const Attributes* descriptor, int number, void* value, std::size_t bytes,
           std::size_t* written) {
  const std::size_t count = descriptor->Get(number, value, bytes);
  if (written) *written = count;
  return 0;
}

}  // namespace

SIMGPU_API Status cublasLtMatmulDescCreate(Attributes** descriptor, int compute_type,
                                           int scale_type) {
  *descriptor = new Attributes;
  Set(*descriptor, kComputeType, compute_type);
  Set(*descriptor, kScaleType, scale_type);
  return 0;
}

SIMGPU_API Status cublasLtMatmulDescDestroy(Attributes* descriptor) {
  delete descriptor;
  return 0;
}

SIMGPU_API Status cublasLtMatmulDescSetAttribute(Attributes* descriptor, int number,
                                                 const void* value, std::size_t bytes) {
  descriptor->Set(number, value, bytes);
  return 0;
}

SIMGPU_API Status cublasLtMatmulDescGetAttribute(Attributes* descriptor, int number, void* value,
                                                 std::size_t bytes, std::size_t* written) {
  return Get(descriptor, number, value, bytes, written);
}

SIMGPU_API Status cublasLtMatrixLayoutCreate(Attributes** layout, int type, std::uint64_t rows,
                                             std::uint64_t columns, std::int64_t leading) {
  *layout = new Attributes;
  Set(*layout, kLayoutType, type);
  Set(*layout, kLayoutRows, rows);
  Set(*layout, kLayoutColumns, columns);
  Set(*layout, kLayoutLeadingDimension, leading);
  return 0;
}

SIMGPU_API Status cublasLtMatrixLayoutDestroy(Attributes* layout) {
  delete layout;
  return 0;
}

SIMGPU_API Status cublasLtMatrixLayoutSetAttribute(Attributes* layout, int number,
                                                   const void* value, std::size_t bytes) {
  layout->Set(number, value, bytes);
  return 0;
}

SIMGPU_API Status cublasLtMatrixLayoutGetAttribute(Attributes* layout, int number, void* value,
                                                   std::size_t bytes, std::size_t* written) {
  return Get(layout, number, value, bytes, written);
}

SIMGPU_API Status cublasLtMatmulAlgoGetHeuristic(void*, Attributes*, Attributes*, Attributes*,
                                                 Attributes*, Attributes*, void*, int wanted,
                                                 HeuristicResult* results, int* found) {
  *found = 0;
  if (wanted < 1) return 0;
  results[0] = {};
  results[0].algorithm.data[0] = 1;
  results[0].waves = 1;
  *found = 1;
  return 0;
}

SIMGPU_API Status cublasLtMatmulAlgoConfigGetAttribute(const Algorithm*, int, void* value,
                                                       std::size_t bytes, std::size_t* written) {
  const Attributes none;
  return Get(&none, 0, value, bytes, written);
}

SIMGPU_API Status cublasLtMatmulAlgoCapGetAttribute(const Algorithm*, int, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const Attributes none;
  return Get(&none, 0, value, bytes, written);
}

SIMGPU_API Status cublasLtMatmul(void*, Attributes* product, const void* alpha, const void* a,
                                 Attributes* a_layout, const void* b, Attributes*, const void* beta,
                                 const void* c, Attributes*, void* d, Attributes* d_layout,
                                 const Algorithm*, void* workspace, std::size_t, CUstream stream) {
  (void)alpha;  // the factors may be on the host
  (void)beta;
  const double rows = Number<std::uint64_t>(d_layout, kLayoutRows);
  const double columns = Number<std::uint64_t>(d_layout, kLayoutColumns);
  const bool transposed = Number<std::int32_t>(product, kTransposeA) != 0;
  const double inner = Number<std::uint64_t>(a_layout, transposed ? kLayoutRows : kLayoutColumns);
  const double batch = std::max(1.0, Number<std::int32_t>(d_layout, kLayoutBatchCount));
  const int math = simgpu::MathOf(static_cast<int>(Number<std::int32_t>(a_layout, kLayoutType)),
                                  static_cast<int>(Number<std::int32_t>(product, kComputeType)));
  const double elements = rows * inner + inner * columns + 2 * rows * columns;
  const bool worked =
      !simgpu_run("cublasLtMatmul", stream, 2 * rows * columns * inner * batch, math,
                  elements * batch * simgpu::BytesOf(math), 5, a, b, c, d, workspace);
  return worked ? 0 : kExecutionFailed;
}
