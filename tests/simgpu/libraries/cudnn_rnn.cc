// libcudnn.so.9: tensor descriptors and the weights of recurrent networks, whose layout TensorFlow
// asks for and relies on.
//
// The weights lie layer by layer ("pseudo layers": directions count as layers). In a layer come the
// input matrices of all gates, then the recurrent ones, then the biases of both, and the
// projection:
//
//   gates x [hidden, input]   gates x [hidden, output]   2 x gates x [hidden]   [projection,
//   hidden]
#include <algorithm>
#include <cstdint>

#include "tests/simgpu/libraries/driver.h"

namespace {

using Status = int;
constexpr Status kSuccess = 0;
constexpr int kMaxDimensions = 8;
constexpr int kLstm = 2;
constexpr int kGru = 3;
constexpr int kBidirectional = 1;
constexpr std::size_t kTemporaryBytes = std::size_t{1} << 20;

struct Tensor {
  int type = 0;
  int rank = 0;
  int sizes[kMaxDimensions] = {};
  int strides[kMaxDimensions] = {};

  void Set(int new_type, int new_rank, const int* new_sizes, const int* new_strides) {
    type = new_type;
    rank = std::min(new_rank, kMaxDimensions);
    std::copy_n(new_sizes, rank, sizes);
    std::copy_n(new_strides, rank, strides);
  }

  double bytes() const {
    double product = type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4;
    for (int i = 0; i < rank; ++i) product *= sizes[i];
    return rank == 0 ? 0 : product;
  }

  void SetMatrix(int new_type, int rows, int columns) {
    const int new_sizes[] = {1, rows, columns};
    const int new_strides[] = {rows * columns, columns, 1};
    Set(new_type, 3, new_sizes, new_strides);
  }
};

struct Rnn {
  int algorithm = 0;
  int cell = 0;
  int biases = 0;
  int direction = 0;
  int input_mode = 0;
  int type = 0;
  int precision = 0;
  int math = 0;
  std::int32_t input = 0;
  std::int32_t hidden = 0;
  std::int32_t projection = 0;
  std::int32_t layers = 0;
  void* dropout = nullptr;
  std::uint32_t flags = 0;

  int directions() const { return direction == kBidirectional ? 2 : 1; }
  int gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  int output() const { return projection ? projection : hidden; }
  bool projects() const { return projection && projection != hidden; }
  int InputOf(int layer) const { return layer < directions() ? input : output() * directions(); }

  std::size_t MatrixElements(int layer) const {
    return std::size_t(gates()) * hidden * (InputOf(layer) + output());
  }
  std::size_t LayerElements(int layer) const {
    const std::size_t projected = projects() ? std::size_t(projection) * hidden : 0;
    return MatrixElements(layer) + std::size_t{2} * gates() * hidden + projected;
  }
  std::size_t LayerStart(int layer) const {
    std::size_t elements = 0;
    for (int below = 0; below < layer; ++below) elements += LayerElements(below);
    return elements;
  }
  std::size_t element_bytes() const {
    switch (type) {
      case 1:  // double
        return 8;
      case 2:  // half
      case 9:  // bfloat16
        return 2;
      default:
        return 4;
    }
  }
};

// A caller passes null for what it does not want to know.
template <typename Value>
void Give(Value* to, Value value) {
  if (to) *to = value;
}

}  // namespace

// For the generated sources.
extern "C" double simgpu_tensor_bytes(const Tensor* tensor) { return tensor ? tensor->bytes() : 0; }

SIMGPU_API Status cudnnCreateTensorDescriptor(Tensor** tensor) {
  *tensor = new Tensor;
  return kSuccess;
}

SIMGPU_API Status cudnnDestroyTensorDescriptor(Tensor* tensor) {
  delete tensor;
  return kSuccess;
}

SIMGPU_API Status cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int rank, const int* sizes,
                                             const int* strides) {
  tensor->Set(type, rank, sizes, strides);
  return kSuccess;
}

SIMGPU_API Status cudnnGetTensorNdDescriptor(const Tensor* tensor, int wanted, int* type, int* rank,
                                             int* sizes, int* strides) {
  Give(type, tensor->type);
  Give(rank, tensor->rank);
  for (int i = 0; i < std::min(wanted, kMaxDimensions); ++i) {
    sizes[i] = i < tensor->rank ? tensor->sizes[i] : 1;
    strides[i] = i < tensor->rank ? tensor->strides[i] : 1;
  }
  return kSuccess;
}

SIMGPU_API Status cudnnCreateRNNDescriptor(Rnn** rnn) {
  *rnn = new Rnn;
  return kSuccess;
}

SIMGPU_API Status cudnnDestroyRNNDescriptor(Rnn* rnn) {
  delete rnn;
  return kSuccess;
}

SIMGPU_API Status cudnnSetRNNDescriptor_v8(Rnn* rnn, int algorithm, int cell, int biases,
                                           int direction, int input_mode, int type, int precision,
                                           int math, std::int32_t input, std::int32_t hidden,
                                           std::int32_t projection, std::int32_t layers,
                                           void* dropout, std::uint32_t flags) {
  *rnn = {algorithm, cell,  biases, direction,  input_mode, type,    precision,
          math,      input, hidden, projection, layers,     dropout, flags};
  return kSuccess;
}

SIMGPU_API Status cudnnGetRNNDescriptor_v8(const Rnn* rnn, int* algorithm, int* cell, int* biases,
                                           int* direction, int* input_mode, int* type,
                                           int* precision, int* math, std::int32_t* input,
                                           std::int32_t* hidden, std::int32_t* projection,
                                           std::int32_t* layers, void** dropout,
                                           std::uint32_t* flags) {
  Give(algorithm, rnn->algorithm);
  Give(cell, rnn->cell);
  Give(biases, rnn->biases);
  Give(direction, rnn->direction);
  Give(input_mode, rnn->input_mode);
  Give(type, rnn->type);
  Give(precision, rnn->precision);
  Give(math, rnn->math);
  Give(input, rnn->input);
  Give(hidden, rnn->hidden);
  Give(projection, rnn->projection);
  Give(layers, rnn->layers);
  Give(dropout, rnn->dropout);
  Give(flags, rnn->flags);
  return kSuccess;
}

SIMGPU_API Status cudnnGetRNNWeightSpaceSize(void*, const Rnn* rnn, std::size_t* bytes) {
  *bytes = rnn->LayerStart(rnn->layers * rnn->directions()) * rnn->element_bytes();
  return kSuccess;
}

SIMGPU_API Status cudnnGetRNNTempSpaceSizes(void*, const Rnn*, int, void*, std::size_t* workspace,
                                            std::size_t* reserve) {
  if (workspace) *workspace = kTemporaryBytes;
  if (reserve) *reserve = kTemporaryBytes;
  return kSuccess;
}

// `part` counts the matrices of a layer: gates for the input, gates for the recurrence, and one
// for the projection, which has no bias.
SIMGPU_API Status cudnnGetRNNWeightParams(void*, const Rnn* rnn, std::int32_t layer, std::size_t,
                                          const void* weights, std::int32_t part, Tensor* matrix,
                                          void** matrix_address, Tensor* bias,
                                          void** bias_address) {
  *matrix = {};
  *bias = {};
  matrix->type = bias->type = rnn->type;
  *matrix_address = *bias_address = nullptr;
  const int gates = rnn->gates();
  if (part >= 2 * gates && !rnn->projects()) return kSuccess;
  const auto address = [&](std::size_t element) {
    char* const start = static_cast<char*>(const_cast<void*>(weights));
    return start + (rnn->LayerStart(layer) + element) * rnn->element_bytes();
  };
  const int input = rnn->InputOf(layer);
  const std::size_t biases = rnn->MatrixElements(layer);
  if (part >= 2 * gates) {
    matrix->SetMatrix(rnn->type, rnn->projection, rnn->hidden);
    *matrix_address = address(biases + std::size_t{2} * gates * rnn->hidden);
    return kSuccess;
  }
  const bool recurrent = part >= gates;
  const int columns = recurrent ? rnn->output() : input;
  const std::size_t skipped = recurrent ? std::size_t(gates) * rnn->hidden * input : 0;
  matrix->SetMatrix(rnn->type, rnn->hidden, columns);
  *matrix_address = address(skipped + std::size_t(part % gates) * rnn->hidden * columns);
  bias->SetMatrix(rnn->type, rnn->hidden, 1);
  *bias_address = address(biases + std::size_t(part) * rnn->hidden);
  return kSuccess;
}
